"""Whoever asks at the same time is in one batch, and every question gets an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from model_service.errors import RewardFailed, RewardLate
from model_service.lookahead.rewards import Gathered
from model_service.lookahead.rewards.gathered import MOST_TEXTS


class Asked:
    """Scores texts by their length, once it may."""

    def __init__(self, *, may_go: bool = True) -> None:
        self.batches: list[list[str]] = []
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        if may_go:
            self.go.set()

    async def __call__(self, texts: list[str]) -> Sequence[float]:
        self.batches.append(texts)
        self.asked.set()
        await self.go.wait()
        return [len(text) for text in texts]


async def test_questions_of_a_step_are_one_batch_and_have_their_own_answers() -> None:
    asked = Asked()
    reward = Gathered("sized", asked, 60)
    answers = await asyncio.gather(*(reward.scored(["x" * number] * number) for number in range(1, 5)))
    assert answers == [[1], [2, 2], [3, 3, 3], [4, 4, 4, 4]]
    assert [len(batch) for batch in asked.batches] == [10]
    assert await reward.scored([]) == []


async def test_what_comes_in_between_is_the_next_batch() -> None:
    asked = Asked(may_go=False)
    reward = Gathered("sized", asked, 60)
    first = asyncio.ensure_future(reward.scored(["a"]))
    await asked.asked.wait()
    later = [asyncio.ensure_future(reward.scored([text])) for text in ("bb", "ccc", "dddd")]
    await asyncio.sleep(0)
    later[1].cancel()
    asked.go.set()
    assert await first == [1]
    assert [await later[0], await later[2]] == [[2], [4]]
    assert asked.batches == [["a"], ["bb", "dddd"]]


async def test_a_text_that_fails_fails_alone() -> None:
    async def ask(texts: list[str]) -> Sequence[float]:
        if "poison" in texts:
            raise ValueError
        return [len(text) for text in texts]

    reward = Gathered("picky", ask, 60)
    first, bad, second = await asyncio.gather(*(reward.scored([text]) for text in ("fine", "poison", "good")), return_exceptions=True)
    assert (first, second) == ([4], [4])
    assert isinstance(bad, RewardFailed)


async def test_a_flood_of_texts_is_no_one_batch() -> None:
    asked = Asked()
    reward = Gathered("sized", asked, 60)
    sizes = [MOST_TEXTS + 1, MOST_TEXTS - 1, 1, 1]
    answers = await asyncio.gather(*(reward.scored(["x"] * size) for size in sizes))
    assert [len(answer) for answer in answers] == sizes
    assert [len(batch) for batch in asked.batches] == [MOST_TEXTS + 1, MOST_TEXTS, 1]


async def test_a_batch_that_hangs_is_given_up_and_the_next_one_is_asked_for() -> None:
    asked = Asked(may_go=False)
    reward = Gathered("slow", asked, 0.01)
    with pytest.raises(RewardLate, match=r"'slow' took more than 0\.01 s"):
        await reward.scored(["a"])
    asked.go.set()
    assert await reward.scored(["bb"]) == [2]


async def fails(_: list[str]) -> Sequence[float]:
    raise ZeroDivisionError("with secrets in it")


async def says_too_little(_: list[str]) -> Sequence[float]:
    return [1.0]


async def says_words(texts: list[str]) -> Sequence[float]:
    return texts  # type: ignore[return-value]  # as others' code may


@pytest.mark.parametrize(
    ("ask", "message"),
    [(fails, "'odd' failed: ZeroDivisionError$"), (says_too_little, "gave 1 scores for 2 texts"), (says_words, "failed: ValueError")],
)
async def test_a_reward_that_fails_is_told_to_all_who_asked(ask: object, message: str) -> None:
    reward = Gathered("odd", ask, 60)  # type: ignore[arg-type]  # one of those above
    found = await asyncio.gather(reward.scored(["a", "b"]), reward.scored(["c", "d"]), return_exceptions=True)
    assert [type(error) for error in found] == [RewardFailed, RewardFailed]
    with pytest.raises(RewardFailed, match=message):
        raise found[0]  # type: ignore[misc]  # see above
