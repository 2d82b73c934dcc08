"""xgrammar 0.2.8 behind the protocol: every touch of the library stands here."""
