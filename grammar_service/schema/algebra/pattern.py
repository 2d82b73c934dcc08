"""A pattern of the document, made a set of strings when that is asked for the first time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import StringSet


@dataclass(frozen=True)
class Pattern:
    """`effort` is what the whole document may spend on its patterns."""

    text: str
    effort: Effort = field(compare=False, repr=False)

    @cached_property
    def strings(self) -> StringSet:
        """Raises UnsupportedGrammar: not a regular pattern, or too large a one."""
        return StringSet.of_pattern(self.text, self.effort)
