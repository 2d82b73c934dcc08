"""Counts an engine core's steps and masks (vLLM 0.32: `v1/core/sched/scheduler.py`)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput

from model_service.core_figures import CoreFigures, FiguresWriter
from model_service.engine.core.canonical_answers import CanonicalAnswers
from model_service.engine.workers.mask_output import StepMasks
from model_service.loaded_grammars import LoadedGrammars
from model_service.masks.client import MaskClient


class StepCounter:
    """For the scheduler's thread. A step lasts from its scheduling, or from the end of the one before it where two are under way at once,
    to its last token. `drafts` and accepted ones by where they come from; `counts_rows`: the different rows of a step too; `vocabulary`: as
    in `CoreFigures`."""

    def __init__(
        self,
        writer: FiguresWriter,
        grammars: LoadedGrammars,
        canonical: CanonicalAnswers,
        drafts: Mapping[str, Sequence[int]],
        counts_rows: bool,
        vocabulary: int,
    ) -> None:
        self._writer = writer
        self._grammars = grammars
        self._canonical = canonical
        self._drafts = drafts
        self._counts_rows = counts_rows
        self._under_way = 0
        self._began_ns = 0
        self._steps = self._step_ns = self._mask_ns = self._masked = self._rows = self._distinct = self._preemptions = 0
        self._client: MaskClient | None = None
        self._vocabulary = vocabulary
        self._writer.write(self._figures())

    def begin_step(self, output: SchedulerOutput, began_ns: int) -> None:
        self._preemptions += len(output.preempted_req_ids or ())
        if output.total_num_scheduled_tokens:
            self._began_ns = self._began_ns if self._under_way else began_ns
            self._under_way += 1

    def count_masks(self, began_ns: int, masks: GrammarOutput | StepMasks | None = None) -> None:
        """Masks were worked at from then until now, and these came of it."""
        self._mask_ns += time.perf_counter_ns() - began_ns
        if masks is None:
            return
        if isinstance(masks, StepMasks):
            rows, self._client = masks.rows, masks.client
        else:
            rows = len(masks.grammar_bitmask)
            self._distinct += len({row.tobytes() for row in masks.grammar_bitmask}) if self._counts_rows else 0
        self._masked += rows > 0
        self._rows += rows

    def end_step(self, output: SchedulerOutput) -> int:
        """How long it took, in ns."""
        if not output.total_num_scheduled_tokens:
            return 0
        now = time.perf_counter_ns()
        took = now - self._began_ns
        self._steps += 1
        self._step_ns += took
        self._began_ns, self._under_way = now, self._under_way - 1
        self._writer.write(self._figures())
        return took

    def _figures(self) -> CoreFigures:
        times = self._step_ns // 1000, self._mask_ns // 1000
        grammars = self._grammars.loaded, len(self._grammars)
        late = self._client.late_frames if self._client is not None else 0
        canonical = self._canonical.answers, self._canonical.fallbacks, self._canonical.redraws
        rows = self._masked, self._rows, self._distinct
        drafts = {f"{what}_{source}": of[place] for source, of in self._drafts.items() for place, what in enumerate(("drafts", "accepted"))}
        return CoreFigures(
            *(self._steps, *times, *rows, self._preemptions, *grammars, late, *canonical), **drafts, vocabulary=self._vocabulary
        )
