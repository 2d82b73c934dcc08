"""Reasoning ahead of constrained answers: where it ends, and what may stand in it."""
