"""Traces of requests, as a collector gets them from a running service."""
