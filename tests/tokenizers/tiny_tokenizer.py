"""A byte-level BPE of 300 ids made in code: 4 special tokens, 256 bytes, a few JSON merges, and ids that only the model has."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

VOCAB_SIZE = 300
SPECIAL = ("<|pad|>", "<|end|>", "<|user|>", "<|other_end|>")
STOP_ID = 1
USER_ID = 2
OTHER_STOP_ID = 3
_MERGES = [('"', ":"), ('":', "Ġ"), (",", "Ġ"), ("{", '"'), ('"', "}"), ("a", "b"), ("t", "r"), ("u", "e"), ("tr", "ue"), ("1", "2")]


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*SPECIAL, *alphabet, *(left + right for left, right in _MERGES)]
    model = models.BPE(vocab={word: index for index, word in enumerate(words)}, merges=_MERGES)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL[STOP_ID], pad_token=SPECIAL[0])


def marked_tokenizer(marks: Iterable[str], special: bool = False) -> PreTrainedTokenizerFast:
    """With the marks of models as tokens that have a text, as models have most of them, or as `special` ones."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([AddedToken(mark, special=special, normalized=False) for mark in marks], special_tokens=special)
    return tokenizer


def save_tiny_model(folder: Path) -> Path:
    """A folder with the tokenizer and the configuration that tells the vocabulary's size."""
    tiny_tokenizer().save_pretrained(str(folder))
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": VOCAB_SIZE}), encoding="utf-8")
    return folder
