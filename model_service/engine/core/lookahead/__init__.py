"""What the engine core does for requests that look ahead (vLLM 0.32)."""
