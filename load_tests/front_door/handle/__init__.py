"""The same service by Ray handle and over HTTP."""
