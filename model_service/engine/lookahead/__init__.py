"""Look-aheads of an engine's requests: what they ask of the engine, and whoever asks."""
