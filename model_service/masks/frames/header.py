"""The layout of a mask frame, version 2. Everything is little-endian and aligned to 4 bytes, in this order:

| part | type | what |
|---|---|---|
| header | `4s` + `uint32[8]` | magic, version, vocabulary size V, and the numbers n, A, F, C, T, P below |
| index | `int32[n]` | for each row of logits, in their order: its entry, `FREE`, or `forced_code(token)` |
| bases | `uint32[C]` | the row that an entry differs from in the tokens of its list |
| ends | `uint32[A + F + C, pages]` | where the tokens of an entry's list end that are on one page of 65,536 |
| tokens | `uint16[T]` | on their pages, ascending: A lists of the only allowed ones, F of the only forbidden ones, C of those that differ |
| rows | `int32[P, ceil(V/32)]` | bitmask rows, bit set = token allowed; bits past V are clear |

Entries are the distinct masks, each of them once, in whichever form is short. They count through: 0 to A-1 have lists of allowed tokens,
the next F of forbidden ones, the next C of the tokens in which they differ from a row, the last P are rows. A mask of all ones (the row of
logits may be anything) and a one-hot mask (a single token is forced) are no entries: they cost their 4 bytes in the index and no more.
"""

from __future__ import annotations

import struct
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

from model_service.errors import InvalidFrame

MAGIC = b"MCMF"
VERSION = 2
FREE = -1
"""In the index: nothing is forbidden."""
MOST_VOCABULARY = (1 << 31) - 2
"""So that every forced token has a code of 32 bits."""

PAGE_WORDS = 2048
"""Of a bitmask row: the words of the tokens that 16 bits tell apart."""

_FIELDS = struct.Struct("<4s8I")
WORD = 4
HEADER_WORDS = _FIELDS.size // WORD


def forced_code(token: int) -> int:
    """In the index: the token, and no other one, is allowed. Its own inverse."""
    return -2 - token


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """`logits`: n, rows of logits; `allowed`: A, `forbidden`: F, `changed`: C, lists; `tokens`: T, in all lists; `rows`: P."""

    vocab_size: int
    logits: int
    allowed: int
    forbidden: int
    changed: int
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
    def pages(self) -> int:
        return (self.row_words + PAGE_WORDS - 1) // PAGE_WORDS

    @property
    def lists(self) -> int:
        return self.allowed + self.forbidden + self.changed

    @property
    def entries(self) -> int:
        return self.lists + self.rows

    @property
    def size_bytes(self) -> int:
        """Of the whole frame."""
        words: int = self.rows_at.stop
        return WORD * words

    @property
    def naive_bytes(self) -> int:
        """Of a bitmask row for each row of logits."""
        return WORD * self.logits * self.row_words

    @property
    def index_at(self) -> slice:
        """Words of the frame, as are the next four."""
        return slice(HEADER_WORDS, HEADER_WORDS + self.logits)

    @property
    def bases_at(self) -> slice:
        start = self.index_at.stop
        return slice(start, start + self.changed)

    @property
    def ends_at(self) -> slice:
        start = self.bases_at.stop
        return slice(start, start + self.lists * self.pages)

    @property
    def tokens_at(self) -> slice:
        start = self.ends_at.stop
        return slice(start, start + (self.tokens + 1) // 2)

    @property
    def rows_at(self) -> slice:
        start = self.tokens_at.stop
        return slice(start, start + self.rows * self.row_words)


def listed_tokens(header: FrameHeader, words: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """int32 [T]: the tokens of all lists of a frame, with their pages."""
    places = words[header.tokens_at].view("<u2")[: header.tokens]
    first = np.tile(np.arange(header.pages, dtype=np.int32) * (PAGE_WORDS * 32), header.lists)
    tokens: npt.NDArray[np.int32] = np.repeat(first, np.diff(words[header.ends_at], prepend=0)) + places
    return tokens
