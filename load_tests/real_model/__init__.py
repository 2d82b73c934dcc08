"""What a real model's user gets at the port, beside vLLM's own server: speed, and what the answers are worth."""
