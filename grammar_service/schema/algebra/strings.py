"""Strings by length, pattern and format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from grammar_service.regexes.string_set import StringSet
from grammar_service.regexes.string_set_regex import anchored_pattern
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.pattern import Pattern
from grammar_service.schema.json_text import Json

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Strings:
    """Strings of `least` to `most` characters (None: no bound) that match all `patterns` and none of `avoided`, are of all `formats`,
    one of `values` (None: any) and none of `excluded`."""

    least: int = 0
    most: int | None = None
    patterns: tuple[Pattern, ...] = ()
    avoided: tuple[Pattern, ...] = ()
    formats: tuple[str, ...] = ()
    values: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()

    def meet(self, other: Strings) -> Strings | None:
        """Both at once; None where nothing is left. Raises Inexact: values of a format."""
        bounds = [most for most in (self.most, other.most) if most is not None]
        values = self.values if other.values is None else other.values
        if self.values is not None and other.values is not None:
            theirs = set(other.values)
            values = tuple(value for value in self.values if value in theirs)
        return Strings(
            max(self.least, other.least),
            min(bounds) if bounds else None,
            _union(self.patterns, other.patterns),
            _union(self.avoided, other.avoided),
            _union(self.formats, other.formats),
            values,
            _union(self.excluded, other.excluded),
        ).tidy()

    def tidy(self) -> Strings | None:
        if self.values is not None:
            return self._with_values(self.values)
        return None if self.most is not None and self.least > self.most else self

    def _with_values(self, values: tuple[str, ...]) -> Strings | None:
        if self.formats and values:
            raise Inexact("which values are of a format is not decided here")
        excluded = set(self.excluded)
        kept = tuple(value for value in values if value not in excluded and self._allows(value))
        return Strings(values=kept) if kept else None

    def _allows(self, value: str) -> bool:
        """Whether length and patterns do."""
        return (
            len(value) >= self.least
            and (self.most is None or len(value) <= self.most)
            and all(value in pattern.strings for pattern in self.patterns)
            and not any(value in pattern.strings for pattern in self.avoided)
        )

    def complement(self) -> list[Strings]:
        """Raises Inexact: not of a format."""
        if self.formats:
            raise Inexact("the strings that are not of a format cannot be described")
        if self.values is not None:
            return [Strings(excluded=self.values)]
        outside = [Strings(most=self.least - 1)] if self.least else []
        outside += [Strings(least=self.most + 1)] if self.most is not None else []
        outside += [Strings(avoided=(pattern,)) for pattern in self.patterns]
        outside += [Strings(patterns=(pattern,)) for pattern in self.avoided]
        return outside + ([Strings(values=self.excluded)] if self.excluded else [])

    def without(self, other: Strings) -> list[Strings]:
        """Those that are not in the other. Raises Inexact as `complement` does, where these are not of the same formats themselves."""
        patterns = tuple(pattern for pattern in other.patterns if pattern not in self.patterns)
        formats = tuple(name for name in other.formats if name not in self.formats)
        outside = replace(other, patterns=patterns, formats=formats).complement()
        return [both for part in outside if (both := self.meet(part)) is not None]

    def language_of_patterns(self) -> StringSet:
        """The strings that the patterns and the excluded values leave."""
        language = StringSet.everything()
        for pattern in self.patterns:
            language = language.intersection(pattern.strings)
        for pattern in self.avoided:
            language = language.intersection(pattern.strings.complement())
        return language.intersection(StringSet.of_strings(self.excluded).complement()) if self.excluded else language

    def language(self) -> StringSet:
        """All of it as a set. Raises Inexact: a format is in it."""
        if self.formats:
            raise Inexact("a format cannot be combined with patterns")
        if self.values is not None:
            return StringSet.of_strings(self.values)
        lengths = StringSet.of_lengths(self.least, self.most) if self.least or self.most is not None else StringSet.everything()
        return self.language_of_patterns().intersection(lengths)

    def to_schema(self) -> Json:
        if self.values is not None:
            return {"enum": list(self.values)}
        schema: dict[str, Json] = {"type": "string"}
        if self.least:
            schema["minLength"] = self.least
        if self.most is not None:
            schema["maxLength"] = self.most
        more: list[Json] = [{"type": "string", "pattern": pattern} for pattern in self._rendered_patterns()]
        more += [{"type": "string", "format": name} for name in self.formats]
        if len(more) > 1:
            return {"allOf": [schema, *more]}
        return {**schema, **more[0]} if more and isinstance(more[0], dict) else schema

    def _rendered_patterns(self) -> list[str]:
        if not self.avoided and not self.excluded:
            return [pattern.text for pattern in self.patterns]
        return [anchored_pattern(self.language_of_patterns())]


def _union(left: tuple[T, ...], right: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*left, *right)))
