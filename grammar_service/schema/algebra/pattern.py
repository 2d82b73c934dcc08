"""A pattern or a format of the document, made a set of strings when that is asked for the first time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import Recognizer, StringSet
from grammar_service.schema.formats.known import FORMATS
from grammar_service.schema.json_text import Json


@dataclass(frozen=True)
class Pattern:
    """The strings that `text` matches. `maybe`: another pattern, where that is not all that there is to it: what `maybe` does not match is
    outside, of what lies between nobody knows. `format`: the format that it stands for. `effort` is what the whole document may spend
    on its patterns."""

    text: str
    effort: Effort = field(compare=False, repr=False)
    maybe: str | None = None
    format: str | None = None

    @classmethod
    def of_format(cls, name: str, effort: Effort) -> Pattern:
        """A known format."""
        known = FORMATS[name]
        return cls(known.pattern, effort, known.maybe, name)

    @cached_property
    def strings(self) -> StringSet:
        """What is certainly inside. Raises UnsupportedGrammar: not a regular pattern, or too large a one."""
        return StringSet.of_pattern(self.text, self.effort)

    @cached_property
    def others(self) -> StringSet:
        """What is certainly outside. Raises as `strings`."""
        return (self.strings if self.maybe is None else StringSet.of_pattern(self.maybe, self.effort)).complement()

    def holds(self, text: str) -> bool | None:
        """Whether a text is inside, None where nobody knows. Raises as `strings`."""
        if self._inside.matches(text):
            return True
        return None if self.maybe is not None and self._inside_or_unknown.matches(text) else False

    def may_hold_any(self, strings: StringSet) -> bool:
        """False only where none of them is inside. Raises as `strings`."""
        return (self._inside if self.maybe is None else self._inside_or_unknown).meets(strings)

    @cached_property
    def _inside(self) -> Recognizer:
        return Recognizer(self.text, self.effort)

    @cached_property
    def _inside_or_unknown(self) -> Recognizer:
        return Recognizer(self.maybe or "", self.effort)

    def to_schema(self) -> Json:
        return {"type": "string", "pattern": self.text} if self.format is None else {"type": "string", "format": self.format}
