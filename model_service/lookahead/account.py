"""What a look-ahead has cost so far, and what its drafts came to."""

from __future__ import annotations

from dataclasses import dataclass, field

from model_service.lookahead.instructions import Ahead, Answer, Draft, Drafted, Emit, Model, Question, Roll, Rolled, Score, State, Verify


@dataclass(slots=True)
class Account:
    """Calls are counted as in the paper's tables 5 to 8: one a token of a look-ahead, one a verification, however many drafts it has. A
    token that a grammar forces costs none. Steps are forwards in a row: look-aheads of one question take theirs together. `reward` is that
    of all that is said (with the look-ahead behind it, until the text has ended)."""

    draft_calls: int = 0
    draft_steps: int = 0
    target_calls: int = 0
    target_steps: int = 0
    reward_calls: int = 0
    proposed: int = 0
    accepted: int = 0
    states: dict[State, int] = field(default_factory=lambda: dict.fromkeys(State, 0))
    tokens: int = 0
    reward: float | None = None

    def answered(self, question: Question, answer: Answer) -> None:
        match question, answer:
            case Verify(), _:
                self._computed(Model.TARGET, 1, 1)
            case Draft(), Drafted(ahead):
                self._rolled(Model.DRAFT, (ahead,))
            case Roll(model), Rolled(aheads):
                self._rolled(model, aheads)
            case Score(texts), _:
                self.reward_calls += len(texts)

    def emitted(self, emit: Emit) -> None:
        self.tokens += len(emit.tokens)
        self.reward = emit.reward
        if emit.verdict is not None:
            self.proposed += emit.verdict.proposed
            self.accepted += emit.verdict.accepted
            self.states[emit.verdict.state] += 1

    def _rolled(self, model: Model, aheads: tuple[Ahead, ...]) -> None:
        forwards = [ahead.forwards for ahead in aheads]
        self._computed(model, sum(forwards), max(forwards))

    def _computed(self, model: Model, calls: int, steps: int) -> None:
        if model is Model.TARGET:
            self.target_calls += calls
            self.target_steps += steps
        else:
            self.draft_calls += calls
            self.draft_steps += steps
