"""From a grammar spec to an artifact; knows nothing of vLLM, Ray or HTTP."""
