"""Pieces of answers through the whole door, without a model."""
