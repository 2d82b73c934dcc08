"""What runs in vLLM's workers, and the executors on the way to them (vLLM 0.32.0)."""
