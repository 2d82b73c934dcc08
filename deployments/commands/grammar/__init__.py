"""`maskcast grammar …`."""
