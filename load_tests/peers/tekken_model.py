"""A small Llama of random weights with a real vocabulary of 131,072 tokens: what it says is noise, what a forward costs is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from deployments.tokenizers import TEKKEN, tokenizer_path

SEED = 23
VOCABULARY = 131_072


def write_tekken_model(folder: Path) -> Path:
    """Tokenizer and weights in the folder, which is made; the same weights every time. Raises UnusableFile: there is no Tekken."""
    shutil.copytree(tokenizer_path(TEKKEN), folder)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=5,
        num_attention_heads=6,
        num_key_value_heads=6,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return folder
