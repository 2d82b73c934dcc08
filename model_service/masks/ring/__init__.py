"""Shared memory that carries frames from the broadcaster to the workers of a node."""
