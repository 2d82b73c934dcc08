"""What a look-ahead asks of a language model, as requests to its engine (vLLM 0.32: `v1/engine/__init__.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from vllm.sampling_params import SamplingParams
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest
from vllm.v1.metrics.stats import PrefillStats
from vllm.v1.outputs import LogprobsLists

from model_service.engine.lookahead.children import Children
from model_service.engine.verification import continuing, verifying
from model_service.errors import LookaheadFailed
from model_service.lookahead.instructions import Ahead, Row, Tokens
from model_service.output_marks import Mark, marks


class EngineModel:
    """One engine's model, for the answer to one request: its prompt, its grammar, its ends. The request need not be this engine's own."""

    def __init__(self, children: Children, parent: EngineCoreRequest) -> None:
        self._children = children
        self._parent = parent
        self._prompt: Tokens = tuple(parent.prompt_token_ids or ())
        self._params: SamplingParams = parent.sampling_params
        self._prefill: PrefillStats | None = None

    @property
    def cached(self) -> int:
        """How many of the prompt's tokens stood in the prefix cache when it was computed first."""
        return 0 if self._prefill is None else min(len(self._prompt), self._prefill.num_cached_tokens)

    async def verify(self, said: Tokens, drafts: Tokens, likeliest: int) -> tuple[Row, ...]:
        """One forward: a row for each draft and one behind the last, each with so many of the likeliest tokens, or as many as there may
        be. Rows behind a draft that the grammar forbids mean nothing. Raises EngineDeadError, LookaheadFailed."""
        params = verifying(self._params, len(said), len(drafts), likeliest)
        outputs = await self._ask(said + drafts, params)
        rows = outputs[-1].new_logprobs
        if rows is None or len(rows.logprobs) != len(drafts) + 1:
            raise LookaheadFailed("the engine has verified no drafts")
        return tuple(_row(rows, place, place < len(drafts)) for place in range(len(drafts) + 1))

    async def roll(self, texts: Sequence[Tokens], lengths: Sequence[int], *, scored: bool = False) -> tuple[Ahead, ...]:
        """The model's next tokens after each text, computed together. `scored`: with their log-probabilities. Raises EngineDeadError,
        LookaheadFailed."""
        rolls = list[asyncio.Task[Ahead]]()
        try:
            for text, length in zip(texts, lengths, strict=True):
                rolls.append(asyncio.create_task(self._rolled(text, length, scored)))
                # Each copies its whole prompt: others may go on in between.
                await asyncio.sleep(0)
            return tuple(await asyncio.gather(*rolls))
        finally:
            for roll in rolls:
                roll.cancel()

    async def _rolled(self, text: Tokens, length: int, scored: bool) -> Ahead:
        outputs = await self._ask(text, continuing(self._params, len(text), length, scored=scored))
        ahead = Ahead()
        for output in outputs:
            ahead = ahead.and_then(_part(output, scored))
        return ahead

    async def _ask(self, text: Tokens, params: SamplingParams) -> list[EngineCoreOutput]:
        outputs = await self._children.ask(self._parent, self._prompt + text, params)
        if self._prefill is None:
            self._prefill = outputs[0].prefill_stats
        return outputs


def _row(rows: LogprobsLists, place: int, has_draft: bool) -> Row:
    tokens, values = rows.logprob_token_ids[place], rows.logprobs[place]
    order = np.lexsort((tokens[1:], -values[1:]))  # the lower of equals, as a greedy sampler takes it
    top = tuple(int(tokens[1 + one]) for one in order if np.isfinite(values[1 + one]))
    return Row(top, float(values[0]) if has_draft else None)


def _part(output: EngineCoreOutput, scored: bool) -> Ahead:
    """Among what the grammar allows, a forced token has probability 1."""
    tokens = tuple(output.new_token_ids)
    forced = Mark.FORCED in marks(output.num_nans_in_logits)
    own = (0.0,) * len(tokens) if forced else _own(output) if scored else ()
    return Ahead(tokens, own if scored else (), (forced,) * len(tokens))


def _own(output: EngineCoreOutput) -> tuple[float, ...]:
    return () if output.new_logprobs is None else tuple(float(value) for value in output.new_logprobs.logprobs[:, 0])
