"""CDLH and CDLH-appx: each token is the candidate whose look-ahead earns most (Algorithm 2 and section 3.1).

Of Algorithm 2 as printed two slips are not followed: the text grows once a token and not once a candidate, and a candidate is rewarded
with its look-ahead, not the look-ahead alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from model_service.lookahead.asking import Asking, roll, score, verify
from model_service.lookahead.instructions import Ahead, Emit, End, Model, Row, Tokens
from model_service.lookahead.parameters import Parameters, Stop


@dataclass(frozen=True, slots=True)
class Choice:
    """A token, the look-ahead after it, and their reward."""

    token: int
    ahead: Ahead
    reward: float


def cdlh(parameters: Parameters, stop: Stop, model: Model) -> Asking[None]:
    """`model` makes the look-aheads: the target's are CDLH, the draft's CDLH-appx. What a grammar forces behind a token is said with it: no
    look-ahead would choose anything else."""
    said: Tokens = ()
    known = Ahead()
    while not stop.reached(said):
        (row,) = yield from verify(said, ())
        choice = yield from choose(parameters, stop, model, said, row, heads(known))
        forced = choice.ahead.forced_first
        tokens = (choice.token, *choice.ahead.tokens[:forced])
        said += tokens
        known = choice.ahead.after(forced)
        yield Emit(tokens, choice.reward)
    yield End(cut=not stop.ended(said))


def choose(parameters: Parameters, stop: Stop, model: Model, said: Tokens, row: Row, held: Mapping[int, Ahead]) -> Asking[Choice]:
    """The best of the row's k likeliest tokens after `said`, the likelier of equals. `held` has look-aheads that are known, by candidate.
    A token that ends the text has none."""
    candidates = row.top[: parameters.k]
    texts = [(*said, token) for token in candidates]
    lengths = [min(parameters.d, stop.room(text)) for text in texts]
    known = [held.get(token, Ahead()) if parameters.reuse else Ahead() for token in candidates]
    aheads = yield from roll(model, texts, lengths, known, stop)
    rewards = yield from score([text + ahead.tokens for text, ahead in zip(texts, aheads, strict=True)])
    best = rewards.index(max(rewards))
    return Choice(candidates[best], aheads[best], rewards[best])


def heads(known: Ahead) -> dict[int, Ahead]:
    """A model's greedy tokens after a text are its look-ahead for the candidate that is the first of them."""
    return {known.tokens[0]: known.after(1)} if known.tokens else {}
