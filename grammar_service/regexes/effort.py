"""How much work a decision may take, counted and not timed, so that it is the same on every machine."""

from __future__ import annotations

from grammar_service.errors import UnsupportedGrammar


class Effort:
    """A number of steps that can be spent once."""

    def __init__(self, steps: int) -> None:
        self._left = steps
        self.spent = 0

    def spend(self, steps: int) -> None:
        """Raises UnsupportedGrammar: there are no more."""
        self._left -= steps
        self.spent += steps
        if self._left < 0:
            raise UnsupportedGrammar("the patterns and cases of this schema are too many to be combined")
