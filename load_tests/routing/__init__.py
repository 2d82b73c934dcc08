"""Routing by schema against the less loaded of two replicas: the same requests to the same service, but for its router."""
