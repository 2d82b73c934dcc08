"""The vocabulary as grammars see it, and the fingerprint that binds an artifact to it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from threading import Lock

import llguidance
import msgspec
import numpy as np
import numpy.typing as npt
import tokenizers
import xgrammar
import zstandard
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from grammar_service.automata.token_trie import TokenTrie
from grammar_service.canonical.automaton import CanonicalAutomaton
from grammar_service.errors import ArtifactError
from grammar_service.guards.tokens.name_tokens import NameTokens
from grammar_service.vocabulary.hidden_specials import hide_specials
from grammar_service.vocabulary.inner_encoder import InnerEncoder
from grammar_service.vocabulary.slow import to_fast_tokenizer
from grammar_service.vocabulary.source import TokenizerSource
from grammar_service.vocabulary.token_spaces import TokenSpaces


class _Portable(msgspec.Struct, frozen=True, array_like=True):
    tokenizer: str
    vocab_size: int
    stop_token_ids: tuple[int, ...]


_NO_TEXT = "\xff"
"""Byte 255 in the alphabet of byte-level tokenizers."""
_PORTABLE = msgspec.msgpack.Decoder(_Portable)


class GrammarTokenizer:
    """One vocabulary of `vocab_size` token ids (the width of a bitmask row in bits).

    Special tokens stand for no text: a grammar can only ever stop at one of them, never match its spelling, since decoding drops
    them from the output. Ids that the model has and the tokenizer lacks are never allowed.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, vocab_size: int, stop_token_ids: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self.vocab_size = vocab_size
        self._finding = Lock()
        self.stop_token_ids: tuple[int, ...] = tuple(sorted(set(stop_token_ids)))
        self.xgrammar: xgrammar.TokenizerInfo = _tokenizer_info(tokenizer, vocab_size, self.stop_token_ids, "")

    @classmethod
    def load(cls, source: str | Path | TokenizerSource) -> GrammarTokenizer:
        """A model's, by its folder or hub name, or by what is known of it besides. Raises OSError, ValueError."""
        return cls.from_huggingface(*TokenizerSource.named(source).load())

    @classmethod
    def from_huggingface(cls, tokenizer: PreTrainedTokenizerBase, vocab_size: int | None = None) -> GrammarTokenizer:
        """From a loaded tokenizer; `vocab_size` None takes the tokenizer's own.

        Raises:
            ValueError: of a kind that cannot be read (`to_fast_tokenizer`), or without an end-of-sequence token.
        """
        tokenizer = to_fast_tokenizer(tokenizer)
        if tokenizer.eos_token_id is None:
            raise ValueError("grammars need a tokenizer with an end-of-sequence token")
        size = vocab_size if vocab_size is not None else max(tokenizer.get_vocab().values()) + 1
        return cls(tokenizer, size, [int(tokenizer.eos_token_id)])

    @classmethod
    def from_portable(cls, data: bytes) -> GrammarTokenizer:
        """What `portable` was made of, with the same fingerprint; takes seconds for a large vocabulary.

        Raises:
            ArtifactError: the bytes are none of `portable`'s.
        """
        try:
            held = _PORTABLE.decode(zstandard.ZstdDecompressor().decompress(data))
            tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer.from_str(held.tokenizer))
        except Exception as error:  # noqa: BLE001  # the tokenizers library raises nothing narrower
            raise ArtifactError(f"no tokenizer can be made of {len(data)} bytes: {error}") from None
        return cls(tokenizer, held.vocab_size, held.stop_token_ids)

    def portable(self) -> bytes:
        """For another process that has not the tokenizer's files; takes a second for a large vocabulary."""
        held = _Portable(self.to_json(), self.vocab_size, self.stop_token_ids)
        return zstandard.ZstdCompressor(level=1).compress(msgspec.msgpack.encode(held))

    def to_json(self) -> str:
        """As in `tokenizer.json`, by the `tokenizers` library."""
        return str(self._tokenizer.backend_tokenizer.to_str())

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of the ordered vocabulary bytes, stop ids, vocabulary size and type, and the prefix-space rule."""
        digest = hashlib.blake2b(digest_size=32)
        info = self.xgrammar
        header = (self.vocab_size, self.stop_token_ids, info.vocab_type.name, bool(info.add_prefix_space))
        digest.update(repr(header).encode())
        for token in self.vocabulary:
            digest.update(len(token).to_bytes(4, "little"))
            digest.update(token)
        return digest.hexdigest()

    @cached_property
    def special_tokens(self) -> Mapping[str, int]:
        """The ids of special tokens by their spellings, stop tokens left out."""
        added = self._tokenizer.added_tokens_decoder.items()
        own = {token.content: index for index, token in added if token.special and index < self.vocab_size}
        return {spelling: index for spelling, index in own.items() if index not in self.stop_token_ids}

    @cached_property
    def added_tokens(self) -> frozenset[str]:
        """The spellings of all tokens that were added to the vocabulary, special or not."""
        added = self._tokenizer.added_tokens_decoder.items()
        return frozenset(token.content for index, token in added if index < self.vocab_size)

    @cached_property
    def special_row(self) -> npt.NDArray[np.int32]:
        """int32 [ceil(V/32)], the bits of special tokens set."""
        row = np.zeros((self.vocab_size + 31) // 32 * 32, dtype=np.uint8)
        row[list(self.special_tokens.values())] = 1
        return np.packbits(row, bitorder="little").view(np.int32)

    @cached_property
    def xgrammar_with_specials(self) -> xgrammar.TokenizerInfo:
        """For grammars that name special tokens. These, but for stop tokens, have a byte that no text has: the library matches no token
        without a text. Made on first use (seconds for a large vocabulary)."""
        unused = "<0xFF>" if self.xgrammar.vocab_type is xgrammar.VocabType.BYTE_FALLBACK else _NO_TEXT
        return _tokenizer_info(self._tokenizer, self.vocab_size, self.stop_token_ids, unused)

    def encode(self, text: str) -> list[int]:
        """The token ids of a text, without special tokens before or after it."""
        return [int(token) for token in self._tokenizer.encode(text, add_special_tokens=False)]

    @cached_property
    def inner(self) -> InnerEncoder:
        """The encoding of text inside of a text, made on first use (over a second for a large vocabulary)."""
        return InnerEncoder(self._tokenizer, self.vocabulary)

    @cached_property
    def llguidance(self) -> llguidance.LLTokenizer:
        """The same vocabulary for llguidance, made on first use (up to a second for a large one)."""
        inner = copy(self._tokenizer.backend_tokenizer)
        inner.no_padding()
        inner.no_truncation()
        return llguidance.LLTokenizer(hide_specials(inner.to_str()), n_vocab=self.vocab_size, eos_token=list(self.stop_token_ids))

    @property
    def canonical(self) -> CanonicalAutomaton:
        """The sequences that it makes itself, found on first use (seconds for a large vocabulary), whichever thread that is in. Raises
        UnsupportedGrammar: they are not known; it says why."""
        with self._finding:
            return self._canonical

    @cached_property
    def _canonical(self) -> CanonicalAutomaton:
        return CanonicalAutomaton.of(self.to_json(), self.vocabulary)

    @cached_property
    def vocabulary(self) -> Sequence[bytes]:
        """The bytes of each token by id, fetched on first use (half a second for a large vocabulary)."""
        return self.xgrammar.decoded_vocab

    @cached_property
    def byte_tokens(self) -> Mapping[int, int]:
        """The tokens of one byte, by it."""
        return {text[0]: token for token, text in enumerate(self.vocabulary) if len(text) == 1}

    @cached_property
    def trie(self) -> TokenTrie:
        """Its tokens by their bytes, found on first use (a third of a second for a large vocabulary)."""
        return TokenTrie(self.vocabulary)

    @cached_property
    def spaces(self) -> TokenSpaces:
        """Where its tokens have whitespace, found on first use (a tenth of a second for a large vocabulary)."""
        return TokenSpaces(self.vocabulary)

    @cached_property
    def names(self) -> NameTokens:
        """Which of its tokens end names, strings and numbers, found on first use (a fifth of a second for a large vocabulary)."""
        return NameTokens(self.vocabulary)


def _tokenizer_info(
    tokenizer: PreTrainedTokenizerFast, vocab_size: int, stop_token_ids: Sequence[int], special_text: str
) -> xgrammar.TokenizerInfo:
    """`special_text`: what stands for each special token that is no stop token."""
    detected = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocab_size, stop_token_ids=list(stop_token_ids))
    vocabulary = [""] * vocab_size
    for token, index in tokenizer.get_vocab().items():
        if index < vocab_size:
            vocabulary[index] = token
    for index, added in tokenizer.added_tokens_decoder.items():
        if added.special and index < vocab_size:
            vocabulary[index] = "" if index in stop_token_ids else special_text
    return xgrammar.TokenizerInfo(
        vocabulary,
        detected.vocab_type,
        vocab_size=vocab_size,
        stop_token_ids=list(stop_token_ids),
        add_prefix_space=detected.add_prefix_space,
    )
