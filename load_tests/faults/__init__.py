"""Clusters of several nodes, all on this machine, and what clients notice of their changes."""
