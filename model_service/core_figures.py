"""What an engine core counts of its steps, on a page of memory that its replica reads at any time without asking it.

The core is a process that vLLM starts and speaks to in its own messages, which carry no figures of ours; a message of our own would need
an answer from a process that is busy stepping. The page is the replica's, since the core starts after it and may end before it. Each
figure is one aligned word with one writer; a reader may see one step's figures half counted, which nobody minds.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields

import numpy as np

from model_service.shared_memory import MemoryAddress, OwnMemory, mapped

DRAFT_SOURCES = ("forced", "recent", "words", "prompt", "answer", "end")
"""Where drafts come from. `forced`: text that the grammar forces. `recent`: a value that the member had in the tenant's last answers.
`words`: the rest of a value, found in the prompt or in the answer so far, cut to as many words as the member mostly has; `prompt`,
`answer`: what stands there, where that number is not known. `end`: the end of a value that is not found."""


@dataclass(frozen=True, slots=True)
class CoreFigures:
    """Since the engine started: `steps` that computed anything and the microseconds they took, of which `mask_us` went into masks; the
    steps that had masks, their rows, and the different ones among those of each step (0 where nobody wanted them counted);
    `preemptions`: how often a request lost its place in the KV cache, to be computed anew; how often a grammar was loaded, from its
    tables or by compiling its recipe. `grammars_resident` are held now. `late_frames` of a mask broadcaster did not come in time.
    `canonical_answers` were to keep to the tokenizer's own tokens and have ended, of which `canonical_fallbacks` do not; `redraws`:
    tokens that led nowhere, and were drawn anew. `drafts_…` were verified and `accepted_…`, by `DRAFT_SOURCES`. `vocabulary`: a number
    for the fingerprint of the tokens that masks are made for (`fingerprint_number`)."""

    steps: int = 0
    step_us: int = 0
    mask_us: int = 0
    masked_steps: int = 0
    mask_rows: int = 0
    distinct_mask_rows: int = 0
    preemptions: int = 0
    grammars_loaded: int = 0
    grammars_resident: int = 0
    late_frames: int = 0
    canonical_answers: int = 0
    canonical_fallbacks: int = 0
    redraws: int = 0
    drafts_forced: int = 0
    accepted_forced: int = 0
    drafts_recent: int = 0
    accepted_recent: int = 0
    drafts_words: int = 0
    accepted_words: int = 0
    drafts_prompt: int = 0
    accepted_prompt: int = 0
    drafts_answer: int = 0
    accepted_answer: int = 0
    drafts_end: int = 0
    accepted_end: int = 0
    vocabulary: int = 0

    def step_ms(self, earlier: CoreFigures) -> float:
        """Mean time of a step since then; 0: there was none."""
        return _mean_ms(self.step_us - earlier.step_us, self.steps - earlier.steps)


class FiguresPage:
    """The replica's end; the engine core writes at `address`. Raises MemoryUnavailable."""

    def __init__(self) -> None:
        self._memory = OwnMemory("maskcast-figures", 8 * len(fields(CoreFigures)), shared_writing=True)
        self.address = self._memory.address

    def read(self) -> CoreFigures:
        return CoreFigures(*np.frombuffer(self._memory.map, dtype=np.int64).tolist())

    def close(self) -> None:
        """The core keeps what it has mapped."""
        self._memory.close()


class FiguresWriter:
    """The engine core's end. Without an address, nobody reads what is counted. Raises MemoryUnavailable: the page is out of reach."""

    def __init__(self, address: MemoryAddress | None = None) -> None:
        page = bytearray(8 * len(fields(CoreFigures))) if address is None else mapped(address, writable=True)
        self._words = np.frombuffer(page, dtype=np.int64)

    def write(self, figures: CoreFigures) -> None:
        self._words[:] = astuple(figures)


def fingerprint_number(fingerprint: str) -> int:
    """So much of a hexadecimal fingerprint as one figure holds."""
    return int(fingerprint[:15], 16)


def _mean_ms(microseconds: int, steps: int) -> float:
    return microseconds / steps / 1000 if steps > 0 else 0.0
