"""The front door measured by vLLM's own benchmark client."""
