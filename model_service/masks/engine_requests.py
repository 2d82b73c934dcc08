"""The requests of one engine, as the broadcaster knows them: decisions only, no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grammar_service.backends import CompiledGrammar, Matcher
from model_service.errors import InvalidMessage
from model_service.masks.frame_filling import Row
from model_service.masks.messages import Begun, Step

MOST_DRAFTS = 64


@dataclass(slots=True)
class _Request:
    """`matcher` None: its grammar is still to come, and `tokens` wait for it."""

    begun: Begun
    tokens: list[int]
    matcher: Matcher | None = None


class EngineRequests:
    """A message that does not follow from those before is refused with InvalidMessage, and ends all of it: masks of another state than the
    engine's would be worse than none."""

    def __init__(self) -> None:
        self._requests: dict[int, _Request] = {}
        self._failed: set[int] = set()
        self._steps = 0
        self._most = -1

    def take(self, step: Step) -> list[int]:
        """All of a step but its rows. Returns the slots whose grammars forbid what they have taken."""
        if step.number != self._steps:
            raise InvalidMessage(f"step {step.number} comes where step {self._steps} should")
        self._steps += 1
        for slot in step.ended:
            if slot in self._failed:
                self._failed.remove(slot)
            else:
                del self._requests[self._checked(slot)]
        for begun in step.begun:
            if begun.slot <= self._most:
                raise InvalidMessage(f"slot {begun.slot} has been used")
            self._most = begun.slot
            self._requests[begun.slot] = _Request(begun, begun.tokens)
        failed = [slot for slot, tokens in step.tokens if slot not in self._failed and not self._advance(slot, tokens)]
        self.fail(failed)
        return failed

    def loaded(self, slot: int, grammar: CompiledGrammar | None) -> bool | None:
        """Whether masks of the request can be had now; None where it has ended meanwhile."""
        if (request := self._requests.get(slot)) is None:
            return None
        if grammar is not None:
            matcher = grammar.matcher(request.begun.stops, MOST_DRAFTS)
            if _advanced(matcher, request.tokens):
                request.matcher, request.tokens = matcher, []
                return True
        self.fail([slot])
        return False

    def rows(self, step: Step) -> list[Row] | None:
        """The matchers of a step's rows, with their drafts; None where one of them has failed by now, which the engine could not know."""
        if any(slot in self._failed for slot, _ in step.rows):
            return None
        if len({slot for slot, _ in step.rows}) != len(step.rows):
            raise InvalidMessage(f"step {step.number} asks twice for a slot")
        if any(len(drafts) > MOST_DRAFTS for _, drafts in step.rows):
            raise InvalidMessage(f"step {step.number} has more than {MOST_DRAFTS} drafts for a slot")
        return [(self._matcher(slot), drafts) for slot, drafts in step.rows]

    def fail(self, slots: Iterable[int]) -> None:
        """There will be no masks of these; they may be named until they end."""
        for slot in slots:
            self._requests.pop(slot, None)
            self._failed.add(slot)

    def _advance(self, slot: int, tokens: list[int]) -> bool:
        request = self._requests[self._checked(slot)]
        if request.matcher is None:
            request.tokens.extend(tokens)
            return True
        return _advanced(request.matcher, tokens)

    def _matcher(self, slot: int) -> Matcher:
        matcher = self._requests[self._checked(slot)].matcher
        if matcher is None:
            raise InvalidMessage(f"masks of slot {slot} are asked for before it is ready")
        return matcher

    def _checked(self, slot: int) -> int:
        if slot not in self._requests:
            raise InvalidMessage(f"there is no slot {slot}")
        return slot


def _advanced(matcher: Matcher, tokens: Iterable[int]) -> bool:
    # What follows termination is not the grammar's concern.
    return all(matcher.is_terminated() or matcher.accept(token) for token in tokens)
