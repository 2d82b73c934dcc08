"""CDSL: drafts that the target accepts and that earn enough are kept; else the target chooses, with a look-ahead (Algorithm 1).

Where text and algorithm differ, this is the text, to which the published counts fit, but for `keep_drafts`: tokens that the target chose
alone are kept as they are rewarded, not always b of them. The reward of drafts is that of all that has been said with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from model_service.errors import OutOfTurn
from model_service.lookahead.asking import Asking, draft, roll, score, verify
from model_service.lookahead.cdlh import choose, heads
from model_service.lookahead.instructions import Ahead, Emit, End, Model, Row, State, Tokens, Verdict
from model_service.lookahead.parameters import Parameters, Rejection, Stop


@dataclass(frozen=True, slots=True)
class _Found:
    """Tokens to say, how the draft model would go on after them (as far as known), and their reward with that."""

    tokens: Tokens
    ahead: Ahead
    reward: float


@dataclass(frozen=True, slots=True)
class _Verified:
    """Drafts after what was said, with their rows, of which the first `accepted` passed."""

    drafts: Ahead
    rows: tuple[Row, ...]
    accepted: int


class Cdsl:
    """One text. `chance` draws for rejection by sampling, and is not asked otherwise."""

    def __init__(self, parameters: Parameters, stop: Stop, chance: Random) -> None:
        self._parameters = parameters
        self._stop = stop
        self._chance = chance
        self._said: Tokens = ()
        self._known = Ahead()

    def run(self) -> Asking[None]:
        while not self._stop.reached(self._said):
            verified = yield from self._verified()
            passed = verified.drafts.tokens[: verified.accepted]
            (reward,) = yield from score([self._said + passed])
            state = self._state(verified, reward)
            if state is State.S1:  # without the target's token behind it, of which no reward is known
                found = _Found(passed, verified.drafts.after(len(passed)), reward)
            else:
                found = yield from self._chosen(verified, state, reward)
            self._said += found.tokens
            self._known = found.ahead if self._parameters.reuse else Ahead()
            yield Emit(found.tokens, found.reward, Verdict(state, len(verified.drafts), verified.accepted, reward))
        yield End(cut=not self._stop.ended(self._said))

    def _verified(self) -> Asking[_Verified]:
        length = min(self._parameters.d, self._stop.room(self._said))
        drafts = self._known.first(length)
        if len(drafts) < length and not self._stop.ended(drafts.tokens):
            drafts = drafts.and_then((yield from draft(self._said + drafts.tokens, length - len(drafts), self._stop)))
        sampling = self._parameters.rejection is Rejection.SAMPLING
        rows = yield from verify(self._said, drafts.tokens, whole=sampling)
        passes = self._drawn if sampling else self._same
        accepted = next((place for place in range(len(drafts)) if not passes(drafts, rows, place)), len(drafts))
        return _Verified(drafts, rows, accepted)

    def _same(self, drafts: Ahead, rows: tuple[Row, ...], place: int) -> bool:
        return drafts.tokens[place] == rows[place].top[0]

    def _drawn(self, drafts: Ahead, rows: tuple[Row, ...], place: int) -> bool:
        """With probability min(1, p / q) (section 3.2.2)."""
        drafted = rows[place].drafted
        if drafted is None or len(drafts.log_probabilities) != len(drafts):
            raise OutOfTurn("rejection by sampling needs the log-probabilities of drafts, from both models")
        return self._chance.random() < math.exp(min(0.0, drafted - drafts.log_probabilities[place]))

    def _state(self, verified: _Verified, reward: float) -> State:
        accepted = verified.accepted / len(verified.drafts) >= self._parameters.a_t
        rewarded = reward >= self._parameters.r_t
        if accepted:
            return State.S1 if rewarded else State.S4
        return State.S3 if rewarded else State.S2

    def _chosen(self, verified: _Verified, state: State, reward: float) -> Asking[_Found]:
        """The target's tokens (steps 1 and 2), after the accepted drafts if those are kept. They never end the text unrewarded."""
        kept = verified.drafts.tokens[: verified.accepted] if self._parameters.keep_drafts else ()
        if self._stop.ended(kept):
            kept = kept[:-1]
        base, row = self._said + kept, verified.rows[len(kept)]
        drafted = verified.drafts.after(len(kept))
        if not self._stop.room(base):
            return _Found(kept, drafted, reward)
        held = heads(drafted)
        if state is not State.S4 and self._parameters.b:
            led = yield from self._led(base, row, held)
            if led is not None:
                return _Found(kept + led.tokens, led.ahead, led.reward)
        choice = yield from choose(self._parameters, self._stop, Model.DRAFT, base, row, held)
        return _Found((*kept, choice.token), choice.ahead, choice.reward)

    def _led(self, base: Tokens, row: Row, held: dict[int, Ahead]) -> Asking[_Found | None]:
        """Step 1: the target's own tokens, up to b of them, until one earns enough with its look-ahead. `held` gets the first's."""
        stop, known = self._stop, held
        tokens: Tokens = ()
        while len(tokens) < self._parameters.b and stop.room(base + tokens):
            if tokens:
                (row,) = yield from verify(base + tokens, ())
            token = row.top[0]
            tokens = (*tokens, token)
            text = base + tokens
            have = known.get(token, Ahead()) if self._parameters.reuse else Ahead()
            (ahead,) = yield from roll(Model.DRAFT, [text], [min(self._parameters.d, stop.room(text))], [have], stop)
            if len(tokens) == 1:
                held[token] = ahead
            (reward,) = yield from score([text + ahead.tokens])
            if reward >= self._parameters.r_t:
                return _Found(tokens, ahead, reward)
            known = heads(ahead)
        return None
