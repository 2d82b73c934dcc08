"""Compiled grammars as bytes: their format, seal and cost, and what is kept in their place when there is none."""
