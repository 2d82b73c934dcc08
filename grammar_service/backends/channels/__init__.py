"""Constraints of answers that stand in a channel of the model's own format, on any backend."""
