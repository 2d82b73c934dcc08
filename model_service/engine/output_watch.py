"""Watches an engine's outputs where they become text (vLLM 0.32: `v1/engine/output_processor.py`): which tokens were forced, and which
requests have been prefilled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vllm.v1.engine import EngineCoreOutput
from vllm.v1.engine.output_processor import OutputProcessor, OutputProcessorOutput, RequestState
from vllm.v1.metrics.stats import RequestSpecDecodeMetrics

from model_service.jump_forward.account import ForcedAccount
from model_service.jump_forward.prefill_load import PrefillLoad
from model_service.output_marks import Mark, marks

_NOBODYS: tuple[ForcedAccount | None, int] = None, 0


@dataclass
class ForcedTotals:
    """Of one engine since it started; `segments` is how many runs the tokens came in, `late` how many of these came when a forward of their
    own requests was under way already."""

    tokens: int = 0
    segments: int = 0
    late: int = 0

    @property
    def steps_saved(self) -> int:
        """Forwards that requests did not need: a segment is computed in one, together with the token ahead of it unless it is late."""
        return self.tokens - self.late


class OutputWatch:
    """Stands between an engine's outputs and its output processor. `watch` tells it whose text to measure. `overlaps`: the engine schedules
    a step while the one ahead of it is under way."""

    def __init__(self, processor: OutputProcessor, load: PrefillLoad, overlaps: bool) -> None:
        self.totals = ForcedTotals()
        self._overlaps = overlaps
        self._load = load
        self._states = processor.request_states
        self._process = processor.process_outputs
        self._watched: dict[str, tuple[ForcedAccount, int]] = {}
        processor.process_outputs = self._watching

    def watch(self, request_id: str, account: ForcedAccount, first_choice: int) -> None:
        """`request_id` is the front end's; its choices are numbered from `first_choice`."""
        self._watched[request_id] = (account, first_choice)

    def forget(self, request_id: str) -> None:
        self._watched.pop(request_id, None)

    def _watching(self, outputs: list[EngineCoreOutput], *args: Any, **options: Any) -> OutputProcessorOutput:
        for output in outputs:
            if output.prefill_stats is not None:
                self._prefilled(output)
            if output.spec_decode_metrics is not None:
                self._drafted(output, output.spec_decode_metrics)
        if all(output.num_nans_in_logits >= 0 for output in outputs):
            return self._process(outputs, *args, **options)
        parts = [self._measured(turn, *args, **options) for turn in turns(outputs)]
        return OutputProcessorOutput(
            request_outputs=[output for part in parts for output in part.request_outputs],
            reqs_to_abort=[request_id for part in parts for request_id in part.reqs_to_abort],
        )

    def _prefilled(self, output: EngineCoreOutput) -> None:
        if (state := self._states.get(output.request_id)) is not None:
            forced = len(output.new_token_ids) if Mark.FORCED in marks(output.num_nans_in_logits) else 0
            self._load.answered(state.external_req_id, forced)

    def _drafted(self, output: EngineCoreOutput, told: RequestSpecDecodeMetrics) -> None:
        state = self._states.get(output.request_id)
        account, _ = self._watched.get(state.external_req_id, _NOBODYS) if state is not None else _NOBODYS
        if account is not None:
            account.drafted += told.num_draft_tokens
            account.accepted += sum(accepted * times for accepted, times in enumerate(told.histogram))

    def _measured(self, outputs: list[EngineCoreOutput], *args: Any, **options: Any) -> OutputProcessorOutput:
        """No two of one request: what has become of its text is then of its output."""
        forced = [(output, state, _length(state)) for output in outputs if (state := self._marked(output)) is not None]
        result = self._process(outputs, *args, **options)
        for output, state, before in forced:
            self._count(output, state, before)
        return result

    def _marked(self, output: EngineCoreOutput) -> RequestState | None:
        """The state of a request whose tokens were forced; what else its output tells is noted."""
        state, told = self._states.get(output.request_id), marks(output.num_nans_in_logits)
        if state is None or not told:
            return None
        account, _ = self._watched.get(state.external_req_id, _NOBODYS)
        if account is not None and Mark.NOT_CANONICAL in told:
            account.not_canonical += 1
        if account is not None and Mark.CLOSED in told:
            account.closed += 1
        return state if Mark.FORCED in told else None

    def _count(self, output: EngineCoreOutput, state: RequestState, before: int) -> None:
        tokens = len(output.new_token_ids)  # less than before, where a stop string came among them
        self.totals.tokens += tokens
        self.totals.segments += 1
        # What is prefilled with a prompt has no token ahead of it, and what ends an answer is not computed.
        self.totals.late += self._overlaps and output.prefill_stats is None and output.finish_reason is None
        account, first = self._watched.get(state.external_req_id, _NOBODYS)
        if account is not None:
            account.add(first + state.request_index, tokens, before, _length(state))


def turns(outputs: Sequence[EngineCoreOutput]) -> list[list[EngineCoreOutput]]:
    """The first output of each request, then the second ones, and so on: as few calls as measuring each one's text takes."""
    taken: Counter[str] = Counter()
    result: list[list[EngineCoreOutput]] = []
    for output in outputs:
        if taken[output.request_id] == len(result):
            result.append([])
        result[taken[output.request_id]].append(output)
        taken[output.request_id] += 1
    return result


def _length(state: RequestState) -> int:
    return len(getattr(state.detokenizer, "output_text", ""))
