"""What a user gets at the HTTP port, beside vLLM's own server: `python -m load_tests.front_door`."""
