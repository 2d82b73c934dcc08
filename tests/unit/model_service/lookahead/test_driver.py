"""What a machine asks is carried out by the model that it means, and its text is that of the plain loops."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from load_tests.lookahead.driving import likeliest as best
from load_tests.lookahead.driving import log_softmax
from model_service.errors import InvalidScore, OutOfTurn
from model_service.lookahead import Method, Parameters, Rejection, Stop, machine_for
from model_service.lookahead.driver import Driver
from model_service.lookahead.instructions import Ahead, Row, Tokens
from tests.unit.model_service.lookahead.reference import Reference
from tests.unit.model_service.lookahead.toy_languages import END, ToyLanguage

STOP = Stop(12, frozenset({END}))
PROMPT = (3, 5)
TARGET = ToyLanguage.of(4, end=-1.5)
DRAFT = TARGET.blurred(5, 0.5)


class ToyModel:
    def __init__(self, language: ToyLanguage) -> None:
        self._language = language

    async def verify(self, said: Tokens, drafts: Tokens, likeliest: int) -> tuple[Row, ...]:
        (logits,) = self._language.logits([PROMPT + said + drafts], [len(drafts) + 1])
        drafted = (*(float(log_softmax(row)[token]) for row, token in zip(logits, drafts, strict=False)), None)
        return tuple(Row(best(row, likeliest), of) for row, of in zip(logits, drafted, strict=True))

    async def roll(self, texts: Sequence[Tokens], lengths: Sequence[int], *, scored: bool = False) -> tuple[Ahead, ...]:
        return tuple(self._rolled(text, length, scored) for text, length in zip(texts, lengths, strict=True))

    def _rolled(self, text: Tokens, length: int, scored: bool) -> Ahead:
        ahead = Ahead()
        while len(ahead) < length and not STOP.ended(ahead.tokens):
            row = self._language.next(PROMPT + text + ahead.tokens)
            (token,) = best(row, 1)
            ahead = ahead.and_then(Ahead((token,), (float(log_softmax(row)[token]),) if scored else ()))
        return ahead


class Judge:
    def __init__(self, worth: float = 1.0) -> None:
        self._worth = worth

    async def score(self, texts: Sequence[Tokens]) -> tuple[float, ...]:
        return tuple(self._worth * len({2, 4, 6} & set(text)) / 3 for text in texts)


def reference() -> Reference:
    return Reference(TARGET.next, DRAFT.next, PROMPT, lambda text: len({2, 4, 6} & set(text)) / 3, STOP.most, STOP.ends)


async def text_of(method: Method, parameters: Parameters, draft: ToyModel | None, judge: Judge) -> tuple[Tokens, bool]:
    """And whether it was cut."""
    driver = Driver(machine_for(method, parameters, STOP), parameters, ToyModel(TARGET), draft, judge)
    parts = [part async for part in driver.run()]
    assert all(tokens and end is None for tokens, end in parts[:-1])
    assert parts[-1][1] is not None
    return tuple(token for tokens, _ in parts for token in tokens), parts[-1][1].cut


async def test_texts_are_those_of_the_plain_loops() -> None:
    draft = ToyModel(DRAFT)
    assert (await text_of(Method.CDLH, Parameters(), None, Judge()))[0] == reference().cdlh()
    assert (await text_of(Method.CDLH_APPX, Parameters(), draft, Judge()))[0] == reference().cdlh_appx()
    text, cut = await text_of(Method.CDSL, Parameters(b=1, r_t=0.6), draft, Judge())
    assert text == reference().cdsl(0.6, 0.6, 1, keep=False)
    assert cut == (text[-1] != END)


async def test_drafts_that_are_drawn_for_have_their_probabilities() -> None:
    parameters = Parameters(rejection=Rejection.SAMPLING)
    text, _ = await text_of(Method.CDSL, parameters, ToyModel(DRAFT), Judge())
    assert text == (await text_of(Method.CDSL, parameters, ToyModel(DRAFT), Judge()))[0]


async def test_without_a_draft_model_nothing_is_drafted() -> None:
    with pytest.raises(OutOfTurn, match="no model to draft with"):
        await text_of(Method.CDSL, Parameters(), None, Judge())


async def test_a_reward_that_is_no_number_ends_it() -> None:
    with pytest.raises(InvalidScore):
        await text_of(Method.CDLH, Parameters(), None, Judge(float("nan")))
