"""Counts an engine core's steps and masks (vLLM 0.32: `v1/core/sched/scheduler.py`)."""

from __future__ import annotations

import time
from typing import Any

from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler

from model_service.core_figures import CoreFigures, FiguresWriter
from model_service.engine.backend import ArtifactBackend

FIGURES, COUNT_ROWS = "maskcast_figures", "maskcast_count_mask_rows"
"""Keys of vLLM's `additional_config`: where the figures are written, and whether different rows are counted, which takes time."""


class WatchedScheduler(Scheduler):
    """A step lasts from its scheduling, or from the end of the one before it where two are under way at once, to its last token."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        asked = self.vllm_config.additional_config
        self._writer = FiguresWriter(asked.get(FIGURES, ""))
        self._counts_rows = bool(asked.get(COUNT_ROWS))
        self._under_way = 0
        self._began_ns = 0
        self._steps = self._step_ns = self._mask_ns = self._masked = self._rows = self._distinct = 0

    def schedule(self, *args: Any, **kwargs: Any) -> SchedulerOutput:
        now = time.perf_counter_ns()
        output: SchedulerOutput = super().schedule(*args, **kwargs)
        if output.total_num_scheduled_tokens:
            self._began_ns = self._began_ns if self._under_way else now
            self._under_way += 1
        return output

    def get_grammar_bitmask(self, scheduler_output: SchedulerOutput) -> GrammarOutput | None:
        began = time.perf_counter_ns()
        output: GrammarOutput | None = super().get_grammar_bitmask(scheduler_output)
        self.count_masks(began, 0 if output is None else len(output.grammar_bitmask))
        if self._counts_rows and output is not None:
            self._distinct += len({row.tobytes() for row in output.grammar_bitmask})
        return output

    def count_masks(self, began_ns: int, rows: int) -> None:
        """Masks were worked at from then until now, and so many came of it."""
        self._mask_ns += time.perf_counter_ns() - began_ns
        self._masked += rows > 0
        self._rows += rows

    def update_from_output(self, scheduler_output: SchedulerOutput, *args: Any, **kwargs: Any) -> Any:
        outputs = super().update_from_output(scheduler_output, *args, **kwargs)
        if scheduler_output.total_num_scheduled_tokens:
            now = time.perf_counter_ns()
            self._steps += 1
            self._step_ns += now - self._began_ns
            self._began_ns, self._under_way = now, self._under_way - 1
            self._writer.write(self._figures())
        return outputs

    def _figures(self) -> CoreFigures:
        backend = self.structured_output_manager.backend
        loaded, resident = (backend.grammars.loaded, len(backend.grammars)) if isinstance(backend, ArtifactBackend) else (0, 0)
        times = self._step_ns // 1000, self._mask_ns // 1000
        return CoreFigures(self._steps, *times, self._masked, self._rows, self._distinct, loaded, resident)
