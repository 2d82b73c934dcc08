"""Everything that touches vLLM: written against vLLM 0.32.0."""
