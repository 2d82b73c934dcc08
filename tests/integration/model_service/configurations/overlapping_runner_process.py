"""Forced tokens in vLLM's first model runner where steps overlap: its class for GPUs, on a processor's tensors, under our scheduler. A
process of its own, since streams and events are taken out of torch for it:
`python -m tests.integration.model_service.configurations.overlapping_runner_process` plays random requests, and prints how many segments
came behind a sample that was void. Answers are to be those of steps one by one, and each forward is to be given the tokens that stand at
its places in the end."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.integration.model_service.configurations.first_runner_process import configured, gpu_runner, kept, prepared
from tests.integration.model_service.jump_forward.played_engine import CONTEXT, SPECS, Ask, Core, Play, chosen
from tests.integration.model_service.running_engine import SETTINGS
from tests.offered_grammars import offered_specs

EXAMPLES, BUDGET, SEATS = 40, 64, 8
asks = st.builds(
    Ask,
    spec=st.none() | st.integers(0, len(SPECS) - 1),
    prompt=st.integers(1, 60),
    most=st.integers(10, 90),
    arrives=st.integers(0, 20),
    leaves=st.none() | st.none() | st.integers(1, 60),
)
plays = st.builds(
    Play,
    asks=st.lists(asks, min_size=4, max_size=10),
    blocks=st.integers(12, 40),
    budget=st.sampled_from([8, 24, BUDGET]),
    seats=st.integers(1, SEATS),
    caching=st.booleans(),
)


class RunnerWorker:
    """A played engine's worker. `given`: by request, the token that a forward was last given for each place; `voided`: segments behind a
    sample that was void."""

    def __init__(self, runner: Any, vocab_size: int) -> None:
        self._runner = runner
        self._vocab_size = vocab_size
        self.given: dict[str, dict[int, int]] = {}
        self.voided = 0

    def execute(self, output: Any) -> None:
        from model_service.jump_forward.forced import FORCED

        batch = self._runner.input_batch
        self.voided += sum(name in batch.req_id_to_index for name in getattr(output, FORCED, {}))
        for name, (tokens, places) in prepared(self._runner, output).items():
            self.given.setdefault(name, {}).update(zip(places, tokens, strict=True))

    def sample(self, output: Any, masks: Any) -> Any:
        from vllm.v1.outputs import ModelRunnerOutput

        runner, rows = (
            self._runner,
            {} if masks is None else dict(zip(masks.structured_output_request_ids, masks.grammar_bitmask, strict=True)),
        )
        batch = runner.input_batch
        names = list(batch.req_ids)
        ends = [int(batch.num_computed_tokens_cpu[row]) + output.num_scheduled_tokens[name] for row, name in enumerate(names)]
        tokens = {name: chosen(name, end, rows.get(name), self._vocab_size) for name, end in zip(names, ends, strict=True)}
        batch.prev_sampled_token_ids = None  # as `sample_tokens` begins
        if names:
            kept(runner, output, tokens)
        sampled = [[] if runner.discard_request_mask.np[row] else [tokens[name]] for row, name in enumerate(names)]
        return ModelRunnerOutput(names, {name: row for row, name in enumerate(names)}, sampled, pooler_output=[])


def played(play: Play, config: Any, channel: str) -> int:
    with closing(Core(play.calm, "sync", channel)) as core:
        expected = core.run()
    with closing(Core(play, "async", channel)) as core:
        core.worker = worker = RunnerWorker(gpu_runner(config), core.worker.vocab_size)
        answers = core.run()
    for name, tokens in answers.items():
        ask, request = play.asks[int(name)], core.requests[name]
        assert tokens == (expected[name] if ask.leaves is None else expected[name][: len(tokens)]), name
        known = dict(enumerate(request.all_token_ids))
        assert all(known.get(place, token) == token for place, token in worker.given.get(name, {}).items()), name
    return worker.voided


def main() -> None:
    voided = []
    arguments = {"max_model_len": 2 * CONTEXT, "max_num_batched_tokens": BUDGET, "enable_chunked_prefill": True}
    with (
        configured(SEATS, **arguments) as config,
        offered_specs(SPECS, GrammarTokenizer.load(SETTINGS.model)) as channel,
    ):
        config.scheduler_config.async_scheduling = True  # which vLLM leaves to GPUs

        @settings(max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.generate])
        @given(plays)
        def each(play: Play) -> None:
            voided.append(played(play, config, channel))

        each()
    print(sum(voided))


if __name__ == "__main__":
    main()
