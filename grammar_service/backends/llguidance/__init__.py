"""llguidance 1.7.6 behind the protocol: every touch of the library stands here."""
