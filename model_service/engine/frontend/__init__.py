"""What stands around vLLM's front end: requests that it refuses, prompts, and streams of calls (vLLM 0.32.0)."""
