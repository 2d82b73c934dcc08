"""A small Llama of random weights with a real vocabulary of 131,072 tokens: what it says is noise, what a forward costs is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from deployments.commands.tokenizers import TEKKEN, tokenizer_path
from model_service.embedded.shape import llama_config

SEED = 23
VOCABULARY = 131_072


def write_tekken_model(folder: Path) -> Path:
    """Tokenizer and weights in the folder, which is made; the same weights every time. Raises UnusableFile: there is no Tekken."""
    shutil.copytree(tokenizer_path(TEKKEN), folder)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    torch.manual_seed(SEED)
    config = llama_config(VOCABULARY, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return folder
