"""The layout of a mask frame, version 1. Everything is little-endian and aligned to 4 bytes, in this order:

| part | type | what |
|---|---|---|
| header | `4s` + `uint32[7]` | magic, version, vocabulary size V, and the numbers n, A, F, T, P below |
| index | `int32[n]` | for each row of logits, in their order: its entry, `FREE`, or `forced_code(token)` |
| ends | `uint32[A + F]` | where the list of an entry ends in the tokens |
| tokens | `uint32[T]` | A lists of the only allowed tokens, then F lists of the only forbidden ones; each ascending |
| rows | `int32[P, ceil(V/32)]` | bitmask rows, bit set = token allowed; bits past V are clear |

Entries are the distinct masks, each of them once, in whichever form is shortest. They count through: 0 to A-1 have lists of allowed tokens,
the next F lists of forbidden ones, the last P are rows. A mask of all ones (the row of logits may be anything) and a one-hot mask (a single
token is forced) are no entries: they cost their 4 bytes in the index and nothing else.
"""

from __future__ import annotations

import struct
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

from model_service.errors import InvalidFrame

MAGIC = b"MCMF"
VERSION = 1
FREE = -1
"""In the index: nothing is forbidden."""
MOST_VOCABULARY = (1 << 31) - 2
"""So that every forced token has a code of 32 bits."""

_FIELDS = struct.Struct("<4s7I")
WORD = 4
HEADER_WORDS = _FIELDS.size // WORD


def forced_code(token: int) -> int:
    """In the index: the token, and no other one, is allowed. Its own inverse."""
    return -2 - token


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """`logits`: n, rows of logits; `allowed`: A, `forbidden`: F, lists; `tokens`: T, in all lists; `rows`: P."""

    vocab_size: int
    logits: int
    allowed: int
    forbidden: int
    tokens: int
    rows: int

    @classmethod
    def read(cls, data: memoryview) -> FrameHeader:
        """The header of a whole frame in bytes. Raises InvalidFrame: not ours, another version, or not as long as the header says."""
        if len(data) < _FIELDS.size:
            raise InvalidFrame(f"{len(data)} bytes are no mask frame")
        magic, version, *numbers = _FIELDS.unpack_from(data)
        if magic != MAGIC or version != VERSION:
            raise InvalidFrame(f"not a mask frame of version {VERSION}")
        header = cls(*numbers)
        if not 1 <= header.vocab_size <= MOST_VOCABULARY:
            raise InvalidFrame(f"no vocabulary has {header.vocab_size} tokens")
        if header.size_bytes != len(data):
            raise InvalidFrame(f"a mask frame of {header.size_bytes} bytes came as {len(data)}")
        if header.entries > header.logits:
            raise InvalidFrame(f"a mask frame with {header.entries} entries for {header.logits} rows of logits")
        return header

    def packed_words(self) -> npt.NDArray[np.int32]:
        return np.frombuffer(_FIELDS.pack(MAGIC, VERSION, *astuple(self)), dtype="<i4")

    @property
    def row_words(self) -> int:
        return (self.vocab_size + 31) // 32

    @property
    def lists(self) -> int:
        return self.allowed + self.forbidden

    @property
    def entries(self) -> int:
        return self.lists + self.rows

    @property
    def size_bytes(self) -> int:
        """Of the whole frame."""
        return WORD * (HEADER_WORDS + self.logits + self.lists + self.tokens + self.rows * self.row_words)

    @property
    def naive_bytes(self) -> int:
        """Of a bitmask row for each row of logits."""
        return WORD * self.logits * self.row_words

    @property
    def index_at(self) -> slice:
        """Words of the frame, as are the next three."""
        return slice(HEADER_WORDS, HEADER_WORDS + self.logits)

    @property
    def ends_at(self) -> slice:
        start = self.index_at.stop
        return slice(start, start + self.lists)

    @property
    def tokens_at(self) -> slice:
        start = self.ends_at.stop
        return slice(start, start + self.tokens)

    @property
    def rows_at(self) -> slice:
        start = self.tokens_at.stop
        return slice(start, start + self.rows * self.row_words)
