"""Engines with jump-forward against stock vLLM: `python -m load_tests.jump_forward`."""
