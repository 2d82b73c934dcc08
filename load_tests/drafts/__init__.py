"""Drafts inside free values, beside jumps alone and vLLM's own drafts."""
