"""A decoded mask frame, and what it says about the logits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from model_service.errors import InvalidFrame
from model_service.masks.frames.cpu_logits import mask_cpu_logits
from model_service.masks.frames.header import FREE, FrameHeader, forced_code, listed_tokens
from model_service.masks.frames.logits import Staging, mask_logits

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """`words` are the whole frame, int32 and not to be written to; it may be shared memory or part of a message."""

    header: FrameHeader
    words: Ints

    @property
    def index(self) -> Ints:
        """int32 [n]: an entry for each row of logits, or `FREE`, or the code of a forced token."""
        return self.words[self.header.index_at]

    @property
    def bases(self) -> Ints:
        """int32 [changed]: the number of the row that a list of what differs is about."""
        return self.words[self.header.bases_at]

    @property
    def ends(self) -> Ints:
        """int32 [lists * pages]: where each page of each list ends in `tokens`."""
        return self.words[self.header.ends_at]

    @property
    def tokens(self) -> Ints:
        """int32 [T]: of all lists, one after the other."""
        return listed_tokens(self.header, self.words)

    @property
    def rows(self) -> Ints:
        """int32 [rows, ceil(V/32)]."""
        return self.words[self.header.rows_at].reshape(self.header.rows, self.header.row_words)

    def apply(self, logits: torch.Tensor, staging: Staging | None = None) -> None:
        """Set to minus infinity, in place, what is forbidden of the logits [n, V], on their device. Raises ValueError: another shape.

        On a GPU nothing waits for the device: the frame is copied there once, by way of `staging`, and its entries become rows there.
        """
        if logits.shape != (self.header.logits, self.header.vocab_size):
            raise ValueError(f"the masks are for logits [{self.header.logits}, {self.header.vocab_size}], not {list(logits.shape)}")
        if logits.is_cpu:
            mask_cpu_logits(self.header, self.words, logits)
        else:
            mask_logits(self.header, self.words, logits, staging or Staging(self.header.logits))

    def arranged(self, places: npt.NDArray[np.integer]) -> Frame:
        """A frame for logits in another order: the row at i takes the mask at `places[i]`, or is free where that is negative. Raises
        ValueError: there is no such mask."""
        known = self.header.logits
        if (places >= known).any():
            raise ValueError(f"the frame has {known} masks only")
        index = np.append(self.index, np.int32(FREE))[np.where(places < 0, known, places)]
        header = replace(self.header, logits=len(index))
        return Frame(header, np.concatenate([header.packed_words(), index, self.words[self.header.index_at.stop :]]))


def decode(data: bytes | bytearray | memoryview) -> Frame:
    """The frame in the bytes, which are not copied. All of it is checked, so that nothing in it can lead a reader astray.

    Raises:
        InvalidFrame: they are no intact frame of this version.
    """
    view = memoryview(data)
    header = FrameHeader.read(view)
    frame = Frame(header, np.frombuffer(view, dtype="<i4"))
    _check_index(frame)
    _check_lists(frame)
    _check_rows(frame)
    return frame


def free_row(vocab_size: int) -> Ints:
    """int32 [ceil(V/32)] with the bits of all tokens set, and no others."""
    row = np.full((vocab_size + 31) // 32, -1, dtype=np.int32)
    if used := vocab_size % 32:
        row[-1] = (1 << used) - 1
    return row


def _check_index(frame: Frame) -> None:
    index = frame.index
    if (index >= frame.header.entries).any() or (index < forced_code(frame.header.vocab_size - 1)).any():
        raise InvalidFrame("a mask frame's index points out of it")


def _check_lists(frame: Frame) -> None:
    ends, total = frame.ends, frame.header.tokens
    if (np.diff(ends, prepend=0) < 0).any() or (int(ends[-1]) if len(ends) else 0) != total:
        raise InvalidFrame("a mask frame's lists are not its tokens")
    if ((frame.bases < 0) | (frame.bases >= frame.header.rows)).any():
        raise InvalidFrame("a mask frame's lists are about rows that it does not have")
    tokens = frame.tokens
    starts = np.zeros(total + 1, dtype=np.bool_)
    starts[0], starts[ends] = True, True
    if (tokens >= frame.header.vocab_size).any() or (~starts[1:total] & (np.diff(tokens) <= 0)).any():
        raise InvalidFrame("a mask frame's lists are not ascending tokens of its vocabulary")


def _check_rows(frame: Frame) -> None:
    if (frame.rows[:, -1] & ~free_row(frame.header.vocab_size)[-1]).any():
        raise InvalidFrame("a mask frame's rows have bits past its vocabulary")
