"""Drafts are verified by one forward of an ordinary request, row by row what the model says by torch alone."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from threading import Thread
from typing import Any

import numpy as np
import pytest

from grammar_service.spec import GrammarKind, GrammarSpec
from model_service.lookahead.instructions import Row, Tokens
from tests.integration.model_service.lookahead.asking import END, VOCABULARY, Asking, prompt_of
from tests.integration.model_service.lookahead.expected import MOSTLY_FORCED, Masked
from tests.integration.model_service.lookahead.torch_model import TorchModel
from tests.integration.model_service.running_engine import CONTEXT, RunningEngine
from tests.waiting import until

BLOCK = 32
CHUNK = 64
NEAR = 1e-3
"""Log-probabilities of the same text, computed in another order."""
WORDS = GrammarSpec(GrammarKind.REGEX, "([a-z]{2,5} ){4}end")


def wrong(token: int) -> int:
    return 300 + (token - 299) % (VOCABULARY - 300)


def check(rows: tuple[Row, ...], expected: np.ndarray[Any, Any], drafts: Tokens, likeliest: int) -> None:
    """Rows have the likeliest tokens, and what each draft has; the lesser of two that are as good as equal may come first."""
    assert len(rows) == len(drafts) + 1 == len(expected)
    for row, want, draft in zip(rows, expected, (*drafts, None), strict=True):
        best = np.sort(want)[::-1][:likeliest]
        best = best[np.isfinite(best)]
        assert len(row.top) == len(best)
        np.testing.assert_allclose(want[list(row.top)], best, atol=NEAR)
        if draft is None:
            assert row.drafted is None
        else:
            assert row.drafted is not None
            np.testing.assert_allclose(row.drafted, want[draft], atol=NEAR)


@pytest.mark.parametrize("kept", [True, False], ids=["cache", "no cache"])
@pytest.mark.parametrize("phase", [1, 2, 7, 15, 27, 28, 30, 31, 32])
def test_rows_are_the_models_at_every_phase_of_a_block(
    request: pytest.FixtureRequest, torch_model: TorchModel, kept: bool, phase: int
) -> None:
    engine: RunningEngine = request.getfixturevalue("chunked" if kept else "forgetful")
    prompt = prompt_of(CHUNK + phase)
    for number in (0, 1, 4, 16):
        drafts = torch_model.greedy(prompt, number)
        check(Asking(engine, prompt).verify((), drafts), torch_model.rows(prompt + drafts, number + 1), drafts, 3)


@pytest.mark.parametrize("phase", [1, 8, 25, 27, 29, 30, 32])
@pytest.mark.parametrize("place", range(5))
def test_drafts_that_are_wrong_at_a_place_are_told_from_there(
    chunked: RunningEngine, torch_model: TorchModel, place: int, phase: int
) -> None:
    prompt = prompt_of(CHUNK + phase, seed=12)
    good = torch_model.greedy(prompt, 7)
    said, rest = good[:2], good[2:]
    drafts = (*rest[:place], wrong(rest[place]), *rest[place + 1 :])
    rows = Asking(chunked, prompt).verify(said, drafts)
    check(rows, torch_model.rows(prompt + said + drafts, 6), drafts, 3)
    assert [row.top[0] for row in rows[: place + 1]] == list(rest[: place + 1])
    assert rows[place].top[0] != drafts[place]
    # What has failed is in the cache, as what it is, and in nobody's way.
    again = Asking(chunked, prompt).verify(said, rest)
    check(again, torch_model.rows(prompt + said + rest, 6), rest, 3)


def test_a_verification_is_one_forward_however_much_is_cached(chunked: RunningEngine, torch_model: TorchModel) -> None:
    prompt = prompt_of(3 * BLOCK + 5, seed=1)
    drafts = torch_model.greedy(prompt, 5)
    asking = Asking(chunked, prompt)
    asking.verify((), drafts)
    for number in (0, 1, 3, 5):
        before = chunked.engine.core.steps
        asking.verify((), drafts[:number])
        assert chunked.engine.core.steps == before + 1


@pytest.mark.parametrize("length", range(CHUNK - 9, CHUNK + 3))
def test_no_border_of_a_chunk_is_among_the_rows(chunked: RunningEngine, torch_model: TorchModel, length: int) -> None:
    prompt = prompt_of(length, seed=2)
    drafts = torch_model.greedy(prompt, 8)
    before = chunked.engine.core.steps
    rows = Asking(chunked, prompt, salt=f"of its own {length}").verify((), drafts)
    check(rows, torch_model.rows(prompt + drafts, 9), drafts, 3)
    assert chunked.engine.core.steps == before + (1 if length + 8 <= CHUNK else 2)


def test_the_last_place_of_the_context_can_be_verified(forgetful: RunningEngine, torch_model: TorchModel) -> None:
    prompt = prompt_of(CONTEXT - 1 - 16)
    drafts = torch_model.greedy(prompt[-100:], 16)
    check(Asking(forgetful, prompt).verify((), drafts), torch_model.rows(prompt + drafts, 17), drafts, 3)


def test_many_verifications_share_steps(forgetful: RunningEngine, torch_model: TorchModel) -> None:
    prompts = [prompt_of(20 + number, seed=3) for number in range(24)]
    drafts = [torch_model.greedy(prompt, 1 + number % 6) for number, prompt in enumerate(prompts)]

    async def all_of_them(held: ExitStack) -> list[tuple[Row, ...]]:
        asked = [Asking(forgetful, prompt).model(held).verify((), draft, 2) for prompt, draft in zip(prompts, drafts, strict=True)]
        return await asyncio.gather(*asked)

    before = forgetful.engine.core.steps
    with ExitStack() as held:
        found = forgetful._run(all_of_them(held))
    for prompt, draft, rows in zip(prompts, drafts, found, strict=True):
        check(rows, torch_model.rows(prompt + draft, len(draft) + 1), draft, 2)
    assert forgetful.engine.core.steps - before < len(prompts) / 2


def test_sampled_neighbours_keep_what_they_say(forgetful: RunningEngine) -> None:
    sampled: dict[str, Any] = {"temperature": 1.3, "top_p": 0.95, "seed": 11, "max_tokens": 60, "ignore_eos": True}
    questions = [f"What is {number} and {number}?" for number in range(6)]
    asked: list[Any] = [(question, None, sampled) for question in questions]
    alone = [answer.tokens for answer in forgetful.ask_all(asked)]
    asking, verified, prompt = Asking(forgetful, prompt_of(50)), 0, prompt_of(12)
    while verified <= 10:  # on a busy machine few of them come while the neighbours are there
        beside: list[tuple[Tokens, ...]] = []
        neighbours = Thread(target=lambda beside=beside: beside.append(tuple(answer.tokens for answer in forgetful.ask_all(asked))))
        neighbours.start()
        while neighbours.is_alive():
            asking.verify(prompt[: verified % 7], prompt[7:])
            verified += 1
        neighbours.join()
        assert list(beside[0]) == alone


@pytest.mark.parametrize("likeliest", [2, 3])
def test_every_row_is_masked_by_what_the_drafts_before_it_leave(chunked: RunningEngine, torch_model: TorchModel, likeliest: int) -> None:
    prompt = prompt_of(45, seed=4)
    masked = Masked(torch_model, WORDS, len(prompt))
    text = masked.greedy(prompt, 40)
    assert text[-1] == END
    asking = Asking(chunked, prompt, WORDS)
    for place in range(len(text)):
        said, drafts = text[:place], text[place : place + 5]
        check(
            asking.verify(said, drafts[:-1], likeliest),
            masked.rows(prompt + text[: place + len(drafts) - 1], len(drafts)),
            drafts[:-1],
            likeliest,
        )


def test_masks_are_of_their_rows_beside_more_requests_than_are_filled_one_by_one(forgetful: RunningEngine, torch_model: TorchModel) -> None:
    """Over 128 of them vLLM fills masks in several threads, one for each request."""
    neighbours: list[Any] = [(f"Say {number}.", WORDS, {"max_tokens": 30}) for number in range(140)]
    alone = [answer.tokens for answer in forgetful.ask_all(neighbours)]
    beside: list[list[Tokens]] = []
    asking = Thread(target=lambda: beside.append([answer.tokens for answer in forgetful.ask_all(neighbours)]))
    prompt = prompt_of(45, seed=9)
    masked = Masked(torch_model, WORDS, len(prompt))
    drafts = masked.greedy(prompt, 3)
    expected = masked.rows(prompt + drafts, 4)
    constrained = Asking(forgetful, prompt, WORDS)
    asking.start()
    while asking.is_alive():
        check(constrained.verify((), drafts), expected, drafts, 3)
    asking.join()
    assert all(answer[-1] == END for answer in beside[0])
    assert sum(one == other for one, other in zip(beside[0], alone, strict=True)) >= len(alone) - 2  # nearly equal tokens


def test_what_is_preempted_is_verified_all_the_same(chunked: RunningEngine, torch_model: TorchModel) -> None:
    """80 blocks hold two of the look-aheads, and some verifications."""
    prompts = [prompt_of(90 + number, seed=10) for number in range(16)]
    drafts = [torch_model.greedy(prompt, 6) for prompt in prompts]

    async def both(held: ExitStack) -> list[Any]:
        long = [Asking(chunked, prompt, ends=False).model(held).roll([()], [900]) for prompt in prompts[:4]]
        verified = [Asking(chunked, prompt).model(held).verify((), draft, 3) for prompt, draft in zip(prompts, drafts, strict=True)]
        return await asyncio.gather(*verified, *long)

    preempted = chunked.engine.core.preemptions
    with ExitStack() as held:
        found = chunked._run(both(held))
    assert chunked.engine.core.preemptions > preempted
    for prompt, draft, rows in zip(prompts, drafts, found, strict=False):
        check(rows, torch_model.rows(prompt + draft, 7), draft, 3)
    assert [len(ahead) for (ahead,) in found[len(prompts) :]] == [900] * 4


def test_a_draft_that_the_grammar_forbids_has_no_probability(chunked: RunningEngine, torch_model: TorchModel) -> None:
    prompt = prompt_of(45, seed=5)
    model = Masked(torch_model, WORDS, len(prompt))
    (first,) = model.greedy(prompt, 1)
    masked = model.logits((*prompt, first))
    forbidden = int(np.flatnonzero(np.isneginf(masked))[-1])
    rows = Asking(chunked, prompt, WORDS).verify((), (first, forbidden, first))
    assert rows[0].top[0] == first
    assert rows[1].drafted == -np.inf
    assert list(rows[1].top) == list(np.argsort(-masked)[:3])


def test_look_aheads_go_on_inside_the_grammar(chunked: RunningEngine, torch_model: TorchModel) -> None:
    prompt = prompt_of(45, seed=6)
    text = Masked(torch_model, WORDS, len(prompt)).greedy(prompt, 40)
    asking = Asking(chunked, prompt, WORDS)
    places = range(len(text))
    aheads = [asking.roll(text[:place], length=4)[0].tokens for place in places]
    assert aheads == [text[place : place + 4] for place in places]
    assert text[-1] == END
    for length in (1, 2):  # in the middle of what is forced as well, and with probabilities
        for scored in (False, True):
            found = [asking.roll(text[:place], length=length, scored=scored)[0].tokens for place in places]
            assert found == [text[place : place + length] for place in places]


@pytest.mark.parametrize("scored", [False, True])
def test_forced_tokens_of_a_look_ahead_cost_no_forward(chunked: RunningEngine, torch_model: TorchModel, scored: bool) -> None:
    prompt = prompt_of(45, seed=11)
    masked = Masked(torch_model, MOSTLY_FORCED, len(prompt))
    asking, text = Asking(chunked, prompt, MOSTLY_FORCED), masked.greedy(prompt, 60)
    for place in range(0, len(text), 3):
        asking.roll(text[:place], length=16, scored=scored)
        before = chunked.engine.core.steps
        (ahead,) = asking.roll(text[:place], length=16, scored=scored)
        assert ahead.tokens == text[place : place + 16]
        assert chunked.engine.core.steps - before == ahead.forwards <= max(1, len(ahead) // 3)
        if scored:
            rows = masked.rows((*prompt, *text[:place], *ahead.tokens), len(ahead) + 1)[:-1]
            np.testing.assert_allclose(ahead.log_probabilities, rows[range(len(ahead)), ahead.tokens], atol=NEAR)


def test_look_aheads_are_scored_by_their_model(chunked: RunningEngine, torch_model: TorchModel) -> None:
    prompt = prompt_of(33, seed=7)
    texts = [prompt_of(number, seed=8) for number in range(3)]
    for text, ahead in zip(texts, Asking(chunked, prompt).roll(*texts, length=5, scored=True), strict=True):
        assert ahead.tokens == torch_model.greedy(prompt + text, len(ahead))
        rows = torch_model.rows(prompt + text + ahead.tokens, len(ahead) + 1)[:-1]
        np.testing.assert_allclose(ahead.log_probabilities, rows[range(len(ahead)), ahead.tokens], atol=NEAR)


def test_whoever_leaves_takes_what_was_asked_along(chunked: RunningEngine) -> None:
    children: Any = chunked.engine._engine.children  # type: ignore[union-attr]  # it has started

    async def leave(held: ExitStack) -> None:
        rolls = asyncio.ensure_future(Asking(chunked, prompt_of(40), ends=False).model(held).roll([(), (7,)], [1500, 1500]))
        await asyncio.to_thread(until, lambda: len(children) == 2)
        rolls.cancel()
        await asyncio.wait([rolls])

    with ExitStack() as held:
        chunked._run(leave(held))
    assert len(children) == 0
    before = chunked.engine.core.steps
    Asking(chunked, prompt_of(40)).verify((), (5,))
    # The rolls would have gone on for a thousand steps.
    assert chunked.engine.core.steps - before < 50


def test_what_is_asked_has_the_place_in_the_queue_and_the_cache_of_whom_it_is_for(
    chunked: RunningEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    core: Any = chunked.engine._engine.engine_core  # type: ignore[union-attr]  # it has started
    add, added = core.add_request_async, []

    async def seen(request: Any) -> None:
        added.append((request.arrival_time, request.priority, request.cache_salt))
        await add(request)

    monkeypatch.setattr(core, "add_request_async", seen)
    asking = Asking(chunked, prompt_of(40), salt="a tenant's")
    asking.verify((), (5,))
    asking.roll((), (7,), length=2)
    assert added == [(0.0, 0, "a tenant's")] * 3


def test_nothing_of_it_is_a_request_of_the_engines(chunked: RunningEngine) -> None:
    asked = partial(Asking(chunked, prompt_of(40)).verify, (), (5,))
    before = chunked.engine.running
    asked()
    assert chunked.engine.running == before == 0
