"""How large the embedded model is, for all who make one of that size."""

from __future__ import annotations

from typing import Any

from transformers import LlamaConfig


def llama_config(vocab_size: int, **tokens: Any) -> LlamaConfig:
    """`tokens` are the ids of special tokens, as the library names them."""
    return LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=5,
        num_attention_heads=6,
        num_key_value_heads=6,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        **tokens,
    )
