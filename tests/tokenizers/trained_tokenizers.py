"""Small tokenizers of the kinds that models have, trained on a few lines in a fraction of a second."""

from __future__ import annotations

import json
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_END = "</s>"
_TEXTS = [
    '{"name": "Ada Lovelace", "age": 36, "city": "London", "ok": true, "items": [1, 2, 345, 1234567]}',
    "I've don't we'll you're it's he'd I'm the world wordly hello helloworld foo bar foobar foobaz",
    "  indented\n    more\n\n\ttabs\t\t  trailing   \n \n  x",
    "naïve café über ümlaut 東京都 日本語 日本 🎉🎉 e\u0301 ABC ABCd camelCase HTTPServer あBc ２ ² 3.14 100 2000 12 123 12345",
    '... --- /// :// "\': "," "}, {"a": ["b"]}',
]
_THREE_DIGITS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def digits_in_threes() -> GrammarTokenizer:
    return GrammarTokenizer.from_huggingface(digits_in_threes_tokenizer())


def digits_in_threes_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level, split by a pattern that takes up to three digits together."""
    split = pre_tokenizers.Split(Regex(_THREE_DIGITS), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return _byte_level(pre_tokenizers.Sequence([split, level]), 900)


def contractions(add_prefix_space: bool = False) -> GrammarTokenizer:
    """Byte-level, split at words, numbers and contractions."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=True)
    return GrammarTokenizer.from_huggingface(_byte_level(level, 900))


def unsplit() -> GrammarTokenizer:
    """Byte-level, with merges across whatever they like."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return GrammarTokenizer.from_huggingface(_byte_level(level, 1500))


def sentences() -> GrammarTokenizer:
    return GrammarTokenizer.from_huggingface(sentences_tokenizer())


def sentences_tokenizer() -> PreTrainedTokenizerFast:
    """Of characters and, for the rest, bytes; a space is put before the text, and tokens reach across words."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return _with_fallback(tokenizer)


def words() -> GrammarTokenizer:
    """The same, split at words."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    return GrammarTokenizer.from_huggingface(_with_fallback(tokenizer))


def _byte_level(pre_tokenizer: pre_tokenizers.PreTokenizer, size: int) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    _train(tokenizer, vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return _wrapped(tokenizer)


def _with_fallback(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    space = decoders.Replace("▁", " ")
    tokenizer.decoder = decoders.Sequence([space, decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    _train(tokenizer, vocab_size=1200, special_tokens=["<unk>", *_BYTES])
    written = json.loads(tokenizer.to_str())
    # The trainer takes what it is given beforehand for special tokens; the bytes are none.
    written["added_tokens"] = [token for token in written["added_tokens"] if token["content"] == "<unk>"]
    return _wrapped(Tokenizer.from_str(json.dumps(written)))


def _train(tokenizer: Tokenizer, **options: Any) -> None:
    tokenizer.train_from_iterator(_TEXTS * 30, trainers.BpeTrainer(show_progress=False, min_frequency=2, **options))


def _wrapped(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    tokenizer.add_special_tokens([AddedToken(_END, special=True, normalized=False)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=_END)
