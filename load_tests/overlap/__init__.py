"""Where jumping in overlapping steps wins over jumping in synchronous ones."""
