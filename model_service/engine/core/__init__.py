"""What runs in vLLM's engine core process: our schedulers, and the backend that they put in place (vLLM 0.32.0)."""
