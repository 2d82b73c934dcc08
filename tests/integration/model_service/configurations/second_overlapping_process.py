"""Forced tokens in vLLM's second model runner where steps overlap: its states and kernels, which are interpreted, under our scheduler. A
process of its own: `python -m tests.integration.model_service.configurations.second_overlapping_process` plays random requests, and prints
how many segments came behind a sample that was void, and how many of them were of requests with penalties. Answers are to be those of steps
one by one, each forward is to be given the tokens that stand at its places in the end, and penalties are to count the tokens that do."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.integration.model_service.configurations.second_runner_process import States
from tests.integration.model_service.jump_forward.played_engine import CONTEXT, SPECS, Ask, Core, Play, chosen
from tests.integration.model_service.running_engine import SETTINGS, prepared_environment
from tests.offered_grammars import offered_specs

EXAMPLES, BUDGET, SEATS = 10, 64, 6
asks = st.builds(
    Ask,
    spec=st.integers(0, len(SPECS) - 1),
    prompt=st.integers(1, 40),
    most=st.integers(10, 60),
    arrives=st.integers(0, 10),
    leaves=st.none() | st.none() | st.integers(1, 40),
    penalty=st.sampled_from([0.0, 0.5]),
)
plays = st.builds(
    Play,
    asks=st.lists(asks, min_size=4, max_size=8),
    blocks=st.integers(12, 30),
    budget=st.sampled_from([8, 24, BUDGET]),
    seats=st.integers(2, SEATS),
    caching=st.booleans(),
    second=st.just(True),
)


class RunnerWorker:
    """A played engine's worker. `given`: by request, the token that a forward was last given for each place; `counted`: of those with
    penalties, how many tokens it had at each sample, and how often each token was counted in its output; `voided`: requests whose
    segments came behind a sample that was void."""

    def __init__(self, vocab_size: int) -> None:
        self._states = States(SEATS, CONTEXT, BUDGET, vocab_size)
        self._vocab_size = vocab_size
        self._prepared: dict[str, tuple[list[int], list[int]]] = {}
        self.given: dict[str, dict[int, int]] = {}
        self.counted: list[tuple[str, int, Any]] = []
        self.voided: list[str] = []

    def execute(self, output: Any) -> None:
        from vllm.v1.worker.gpu.model_runner import GPUModelRunner

        GPUModelRunner.finish_requests(self._states.runner, output)
        self._count_void(output)
        self._prepared = self._states.prepared(output, output.num_scheduled_tokens) if output.num_scheduled_tokens else {}
        for name, (tokens, places) in self._prepared.items():
            self.given.setdefault(name, {}).update(zip(places, tokens, strict=True))

    def sample(self, output: Any, masks: Any) -> Any:
        from vllm.v1.outputs import ModelRunnerOutput

        rows = {} if masks is None else dict(zip(masks.structured_output_request_ids, masks.grammar_bitmask, strict=True))
        ends = {name: self._prepared[name][1][-1] + 1 for name in output.num_scheduled_tokens}
        tokens = [chosen(name, end, rows.get(name), self._vocab_size) for name, end in ends.items()]
        before = self._states.penalties.output_bin_counts.clone()
        counts = self._states.kept(output.num_scheduled_tokens, tokens) if ends else []
        for (name, end), count in zip(ends.items(), counts, strict=True):
            row = self._states.requests.req_id_to_index[name]
            if count and self._states.penalties.use_penalty[row]:
                self.counted.append((name, end, before[row].numpy()))
        sampled = [[token] if count else [] for token, count in zip(tokens, counts, strict=True)]
        return ModelRunnerOutput(list(ends), {name: row for row, name in enumerate(ends)}, sampled, pooler_output=[])

    def _count_void(self, output: Any) -> None:
        """Where the runner has a token already, before it hears of the segment."""
        from model_service.jump_forward.forced import FORCED

        states = self._states.requests
        for name, segment in getattr(output, FORCED, {}).items():
            row = states.req_id_to_index.get(name)
            if row is not None and states.total_len.gpu[row] > states.prompt_len.np[row] + segment.start:
                self.voided.append(name)


def played(play: Play, channel: str) -> list[bool]:
    """Of the requests whose segments came behind a void sample, whether they had penalties."""
    with closing(Core(play.calm, "sync", channel)) as core:
        expected = core.run()
    with closing(Core(play, "async", channel)) as core:
        core.worker = worker = RunnerWorker(core.worker.vocab_size)
        answers = core.run()
    for name, tokens in answers.items():
        assert tokens == (expected[name] if play.asks[int(name)].leaves is None else expected[name][: len(tokens)]), name
        known = dict(enumerate(core.requests[name].all_token_ids))
        assert all(known.get(place, token) == token for place, token in worker.given.get(name, {}).items()), name
    for name, end, counts in worker.counted:
        request = core.requests[name]
        if end <= request.num_tokens:
            output = request.all_token_ids[request.num_prompt_tokens : end]
            assert counts.tolist() == np.bincount(output, minlength=len(counts)).tolist(), name
    return [play.asks[int(name)].penalty > 0 for name in worker.voided]


def main() -> None:
    import vllm.v1.worker.cpu.shm  # noqa: F401  # pinned memory and streams, for a processor

    voided: list[bool] = []
    with prepared_environment(SETTINGS), offered_specs(SPECS, GrammarTokenizer.load(SETTINGS.model)) as channel:

        @settings(max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.generate])
        @given(plays)
        def each(play: Play) -> None:
            voided.extend(played(play, channel))

        each()
    print(json.dumps([len(voided), sum(voided)]))


if __name__ == "__main__":
    main()
