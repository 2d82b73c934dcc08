"""What the short names of character classes mean in each dialect of regexes."""

from __future__ import annotations

from enum import Enum

from grammar_service.regexes.classes import ASCII_SPACE, DIGIT, ECMA_SPACE, NOT_LINE_TERMINATOR, NOT_NEWLINE, WORD, CodePoints, points
from grammar_service.regexes.syntax import END, Alternation, Assertion, Characters, Concatenation


class Dialect(Enum):
    """Kind `regex` means `re.fullmatch` with `re.ASCII`; a JSON Schema `pattern` means ECMA-262's search."""

    PYTHON_ASCII = "python"
    ECMA = "ecma"

    @property
    def dot(self) -> CodePoints:
        return NOT_LINE_TERMINATOR if self is Dialect.ECMA else NOT_NEWLINE

    @property
    def end(self) -> Assertion:
        """`$` elsewhere than at the end of a regex: Python's holds before a line break at the end of the text, too."""
        return END if self is Dialect.ECMA else _PYTHON_END

    @property
    def shorthands(self) -> dict[str, CodePoints]:
        """By the letter behind the backslash."""
        return _ECMA if self is Dialect.ECMA else _PYTHON_ASCII


def _with_complements(classes: dict[str, CodePoints]) -> dict[str, CodePoints]:
    return {**classes, **{letter.upper(): points.complement() for letter, points in classes.items()}}


_PYTHON_END = Assertion(Alternation((Concatenation((END,)), Concatenation((Characters(points("\n")), END)))), ahead=True, negative=False)
_ECMA = _with_complements({"d": DIGIT, "w": WORD, "s": ECMA_SPACE})
_PYTHON_ASCII = _with_complements({"d": DIGIT, "w": WORD, "s": ASCII_SPACE})
