"""A look-ahead as a machine: take what it says, carry it out, tell it the answer."""

from __future__ import annotations

from random import Random

from model_service.errors import OutOfTurn
from model_service.lookahead.account import Account
from model_service.lookahead.asking import Asking
from model_service.lookahead.cdlh import cdlh
from model_service.lookahead.cdsl import Cdsl
from model_service.lookahead.instructions import Answer, Draft, Emit, End, Instruction, Model, Question, Roll, Score, Verify
from model_service.lookahead.parameters import Method, Parameters, Stop


class Machine:
    """Decodes one text. What it says ends with a question, or with `End`; before that there may be an `Emit`.

    An error ends it: nothing more may be asked of it or told to it.
    """

    def __init__(self, asking: Asking[None]) -> None:
        self._asking = asking
        self._open: Question | None = None
        self.account = Account()

    def start(self) -> tuple[Instruction, ...]:
        """The first instructions; once."""
        return self._until_question(None)

    def take(self, answer: Answer) -> tuple[Instruction, ...]:
        """The instructions that follow from an answer to the last question. Raises InvalidScore, OutOfTurn."""
        if self._open is None:
            raise OutOfTurn("nothing has been asked")
        question, self._open = self._open, None
        said = self._until_question(answer)
        self.account.answered(question, answer)
        return said

    def _until_question(self, answer: Answer | None) -> tuple[Instruction, ...]:
        said: list[Instruction] = []
        while True:
            try:
                instruction = self._asking.send(answer)
            except StopIteration:
                raise OutOfTurn("the text has ended") from None
            said.append(instruction)
            match instruction:
                case Draft() | Verify() | Roll() | Score():
                    self._open = instruction
                    return tuple(said)
                case Emit():
                    self.account.emitted(instruction)
                case End():
                    return tuple(said)
            answer = None


def machine_for(method: Method, parameters: Parameters, stop: Stop, seed: int = 0) -> Machine:
    """`seed` is for rejection by sampling."""
    if method is Method.CDSL:
        return Machine(Cdsl(parameters, stop, Random(seed)).run())
    return Machine(cdlh(parameters, stop, Model.TARGET if method is Method.CDLH else Model.DRAFT))
