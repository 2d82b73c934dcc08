"""Maskcast against its peers: the same work on both, in turn, on one machine."""
