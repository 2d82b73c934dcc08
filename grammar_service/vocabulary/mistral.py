"""Tokenizers in Mistral's own files, which vLLM (0.32: `tokenizers/registry.py`, `tokenizers/mistral.py`) reads with `mistral_common`."""

from __future__ import annotations

import re
from pathlib import Path

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from grammar_service.vocabulary.sentencepiece_model import convert_sentencepiece
from grammar_service.vocabulary.tekken import read_tekken
from grammar_service.vocabulary.tokenizer_modes import TEKKEN

_SENTENCEPIECE = re.compile(r"\.model(\.v(1|2|3|7|11|13|15)(m1)?)?$")
_ENDS = "<s>", "</s>"


def load_mistral(folder: Path) -> PreTrainedTokenizerFast:
    """Raises ValueError: there is none in the folder."""
    names = sorted(file.name for file in folder.iterdir() if file.name == TEKKEN or _SENTENCEPIECE.search(file.name))
    if not names:
        raise ValueError(f"no tokenizer of Mistral's is in {folder}")
    return from_mistral_file(folder / (TEKKEN if TEKKEN in names else names[-1]))


def from_mistral_file(path: Path) -> PreTrainedTokenizerFast:
    """Texts that spell a special token are encoded as texts, as Mistral does."""
    made: Tokenizer = read_tekken(path) if path.suffix == ".json" else convert_sentencepiece(path.read_bytes(), {})
    start, end = _ENDS
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, split_special_tokens=True, bos_token=start, eos_token=end)
    tokenizer.backend_tokenizer.encode_special_tokens = True
    return tokenizer
