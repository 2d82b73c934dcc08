"""What a machine says, and what it is told.

All tokens are those of the answer: whoever drives a machine puts the prompt before them, so that no reward ever sees the prompt (which
names all that is wanted, and would always do). A question gets one answer; `Emit` and `End` get none. With a grammar, both models are the
models under its masks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Tokens: TypeAlias = tuple[int, ...]


class Model(StrEnum):
    TARGET = "target"
    DRAFT = "draft"


class State(StrEnum):
    """What drafts came to (section 3.2.3): S1 accepted and rewarded, S2 neither, S3 only rewarded, S4 only accepted."""

    S1 = "s1"
    S2 = "s2"
    S3 = "s3"
    S4 = "s4"


@dataclass(frozen=True, slots=True)
class Ahead:
    """Greedy tokens of a model. `log_probabilities`: the model's own of each, or none at all, where rejection is hard. `forced`: of each
    whether a grammar has decided it and no model was asked, or none at all, where none is known to be so."""

    tokens: Tokens = ()
    log_probabilities: tuple[float, ...] = ()
    forced: tuple[bool, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def forwards(self) -> int:
        """What the tokens have cost."""
        return len(self) - sum(self.forced)

    @property
    def forced_first(self) -> int:
        """How many tokens, from the first on, can be no others."""
        return next((place for place, forced in enumerate(self.forced) if not forced), len(self.forced))

    def first(self, n: int) -> Ahead:
        return Ahead(self.tokens[:n], self.log_probabilities[:n], self.forced[:n])

    def after(self, n: int) -> Ahead:
        return Ahead(self.tokens[n:], self.log_probabilities[n:], self.forced[n:])

    def and_then(self, more: Ahead) -> Ahead:
        forced = self._all_forced() + more._all_forced() if self.forced or more.forced else ()
        return Ahead(self.tokens + more.tokens, self.log_probabilities + more.log_probabilities, forced)

    def _all_forced(self) -> tuple[bool, ...]:
        return self.forced or (False,) * len(self)


@dataclass(frozen=True, slots=True)
class Row:
    """What the target says at one position. `top`: its likeliest tokens, likeliest first, those that a grammar forbids left out, at least
    one; `drafted`: the log-probability of the draft that stands there (None behind the last, and where rejection is hard)."""

    top: Tokens
    drafted: float | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """The draft model's next `length` tokens after `said`, to be verified. Answer: `Drafted`."""

    said: Tokens
    length: int


@dataclass(frozen=True, slots=True)
class Verify:
    """One forward of the target over `said` and `drafts`. Answer: `Verified`."""

    said: Tokens
    drafts: Tokens


@dataclass(frozen=True, slots=True)
class Roll:
    """A model's next tokens after each text, as many as `lengths` says for it, all of which may be computed together. Answer: `Rolled`."""

    model: Model
    texts: tuple[Tokens, ...]
    lengths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """The rewards of these texts. Answer: `Scored`."""

    texts: tuple[Tokens, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of a verification: `accepted` of `proposed` drafts, whose reward, with the text before them, is `reward`."""

    state: State
    proposed: int
    accepted: int
    reward: float


@dataclass(frozen=True, slots=True)
class Emit:
    """These tokens are said. `reward` is theirs with the look-ahead after them; `verdict` None where nothing was drafted."""

    tokens: Tokens
    reward: float
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The text is complete, or (`cut`) as long as it may be."""

    cut: bool


@dataclass(frozen=True, slots=True)
class Drafted:
    """As long as was asked, unless it ends with an end token."""

    ahead: Ahead


@dataclass(frozen=True, slots=True)
class Verified:
    """A row for each draft, and one behind the last. Where rejection is hard, those behind the first draft that is not the likeliest of its
    row may be missing."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Rolled:
    """One for each text, as long as was asked, unless it ends with an end token."""

    aheads: tuple[Ahead, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    rewards: tuple[float, ...]


Question: TypeAlias = Draft | Verify | Roll | Score
Instruction: TypeAlias = Question | Emit | End
Answer: TypeAlias = Drafted | Verified | Rolled | Scored
