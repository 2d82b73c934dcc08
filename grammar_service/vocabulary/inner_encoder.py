"""The tokenizer's own encoding of a text that stands inside a longer one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

_EVERY_CLASS = "ab Cd 12 .,\n\tx"


class InnerEncoder:
    """Text is bytes here, since tokens need not end where characters do. `vocabulary`: the bytes of each token by id.

    It is a copy of the tokenizer that adds no space before a text, and that reads the spelling of a special token as the text that it is.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, vocabulary: Sequence[bytes]) -> None:
        self._encoder = _inner(tokenizer)
        self._vocabulary = vocabulary
        whole = self.boundaries(_EVERY_CLASS.encode())
        self.is_pairwise = type(self._encoder.model).__name__ == "BPE" and whole == {0}
        """Merges are all there is: a sequence is what the tokenizer would give if all its pairs of neighbours are."""

    def encode(self, text: bytes) -> tuple[int, ...] | None:
        """Token ids; None where they would not give the text back (it is no UTF-8, or one that the tokenizer changes)."""
        try:
            ids = tuple(self._encoder.encode(text.decode("utf-8"), add_special_tokens=False).ids)
        except UnicodeDecodeError:
            return None
        return ids if self.text(ids) == text else None

    def boundaries(self, text: bytes) -> set[int]:
        """The offsets in bytes at which the tokenizer starts anew, so that no token ever crosses them; none if it cannot be encoded."""
        try:
            encoding = self._encoder.encode(text.decode("utf-8"), add_special_tokens=False)
        except UnicodeDecodeError:
            return set()
        starts = accumulate((len(self._vocabulary[token]) for token in encoding.ids), initial=0)
        return {0} | {start for start, (last, word) in zip([*starts][1:], pairwise(encoding.word_ids), strict=False) if last != word}

    def text(self, ids: Sequence[int]) -> bytes:
        return b"".join([self._vocabulary[token] for token in ids])


def _inner(tokenizer: PreTrainedTokenizerFast) -> Tokenizer:
    written = tokenizer.backend_tokenizer.to_str()
    if '"Prepend"' in written or "prepend_scheme" in written or '"add_prefix_space":true' in written:
        rules: dict[str, Any] = json.loads(written)
        for part in ("normalizer", "pre_tokenizer"):
            rules[part] = _without_prefix(rules[part])
        written = json.dumps(rules)
    inner = Tokenizer.from_str(written)
    inner.no_truncation()
    inner.no_padding()
    inner.encode_special_tokens = True
    return inner


def _without_prefix(rule: Any) -> Any:
    """A normalizer or pre-tokenizer, or a sequence of them, less what puts something before the text. None: nothing is left."""
    if not isinstance(rule, dict) or rule["type"] == "Prepend":
        return None
    if rule["type"] == "Metaspace":
        return {**rule, "prepend_scheme": "never"}
    if rule["type"] == "ByteLevel":
        return {**rule, "add_prefix_space": False}
    for field in ("normalizers", "pretokenizers"):
        if field in rule:
            return {**rule, field: [kept for part in rule[field] if (kept := _without_prefix(part)) is not None]}
    return rule
