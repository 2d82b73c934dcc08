"""Calls of models whose answers stand in channels, with their reasoning."""
