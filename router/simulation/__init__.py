"""Plays traffic on more replicas than there are at hand, with the very policy modules that route it in service."""
