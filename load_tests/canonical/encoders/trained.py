"""Small tokenizers trained on the project's own texts, cut as well-known ones are."""

from __future__ import annotations

from functools import lru_cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.marked_texts import MARKED, marked_texts
from load_tests.canonical.probes import CHARACTERS, Probes, project_texts

_WORDS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": rf"{_WORDS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_REST}",
    "qwen2": rf"{_WORDS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_REST}",
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    rf"{_WORDS}?|[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_WORDS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
NFC = {"qwen2"}
"""Those that bring texts into that form."""


@lru_cache(maxsize=8)
def trained_tokenizer(pattern: str, size: int = 1500) -> GrammarTokenizer:
    """`pattern`: a name in PATTERNS."""
    tokenizer = Tokenizer(models.BPE())
    if pattern in NFC:
        tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_texts(pattern), trainer)
    tokenizer.add_tokens([AddedToken("<call>", normalized=False)])
    return GrammarTokenizer.from_huggingface(PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>"))


def trained_probes(pattern: str, seed: int) -> Probes:
    """On the texts that the tokenizer is trained on."""
    tokenizer = trained_tokenizer(pattern)
    return Probes(tokenizer, tokenizer.canonical, _texts(pattern), seed, MARKED if pattern in NFC else CHARACTERS)


def _texts(pattern: str) -> list[str]:
    return marked_texts() if pattern in NFC else project_texts()
