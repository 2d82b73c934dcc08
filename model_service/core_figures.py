"""What an engine core counts of its steps, on a page of memory that its replica reads at any time without asking it.

The core is a process that vLLM starts and speaks to in its own messages, which carry no figures of ours; a message of our own would need
an answer from a process that is busy stepping. The page is a memfd of the replica's, which the kernel frees with the last process that
holds it. Each figure is one aligned word with one writer; a reader may see one step's figures half counted, which nobody minds.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import astuple, dataclass, fields

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class CoreFigures:
    """Since the engine started: `steps` that computed anything and the microseconds they took, of which `mask_us` went into masks; the
    steps that had masks, their rows, and the different ones among those of each step (0 where nobody wanted them counted); how often
    a grammar was loaded, from its tables or by compiling its recipe. `grammars_resident` are held now."""

    steps: int = 0
    step_us: int = 0
    mask_us: int = 0
    masked_steps: int = 0
    mask_rows: int = 0
    distinct_mask_rows: int = 0
    grammars_loaded: int = 0
    grammars_resident: int = 0

    def step_ms(self, earlier: CoreFigures) -> float:
        """Mean time of a step since then; 0: there was none."""
        return _mean_ms(self.step_us - earlier.step_us, self.steps - earlier.steps)

    def mask_ms(self, earlier: CoreFigures) -> float:
        """Mean time that went into masks in a step since then."""
        return _mean_ms(self.mask_us - earlier.mask_us, self.steps - earlier.steps)


_SIZE_BYTES = 8 * len(fields(CoreFigures))


class FiguresPage:
    """The replica's end; the engine core writes at `path`."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("maskcast-figures", os.MFD_CLOEXEC)
        os.ftruncate(self._descriptor, _SIZE_BYTES)
        self._map = mmap.mmap(self._descriptor, _SIZE_BYTES, prot=mmap.PROT_READ)
        self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def read(self) -> CoreFigures:
        return CoreFigures(*np.frombuffer(self._map, dtype=np.int64).tolist())

    def close(self) -> None:
        """The core keeps what it has mapped."""
        self._map.close()
        os.close(self._descriptor)


class FiguresWriter:
    """The engine core's end. Without a path, nobody reads what is counted. Raises OSError: the page is out of reach."""

    def __init__(self, path: str = "") -> None:
        self._words = _mapped(path) if path else np.zeros(len(fields(CoreFigures)), dtype=np.int64)

    def write(self, figures: CoreFigures) -> None:
        self._words[:] = astuple(figures)


def _mapped(path: str) -> NDArray[np.int64]:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return np.frombuffer(mmap.mmap(descriptor, _SIZE_BYTES), dtype=np.int64)
    finally:
        os.close(descriptor)


def _mean_ms(microseconds: int, steps: int) -> float:
    return microseconds / steps / 1000 if steps > 0 else 0.0
