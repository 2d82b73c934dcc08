"""The OpenAI-compatible HTTP API: from the bytes of a request to a call for an engine, and its answer back."""
