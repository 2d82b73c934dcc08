"""Strings by length, pattern and format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.string_set import StringSet
from grammar_service.regexes.string_set_regex import anchored_pattern
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.pattern import Pattern
from grammar_service.schema.json_text import Json

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Strings:
    """Strings of `least` to `most` characters (None: no bound) that match all `patterns`, formats among them, and none of `avoided`, and
    are one of `values` (None: any) and none of `excluded`."""

    least: int = 0
    most: int | None = None
    patterns: tuple[Pattern, ...] = ()
    avoided: tuple[Pattern, ...] = ()
    values: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()

    def meet(self, other: Strings) -> Strings | None:
        """Both at once; None where nothing is left. Raises Inexact: whether a value is of a format is not known."""
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
            values,
            _union(self.excluded, other.excluded),
        ).tidy()

    def tidy(self) -> Strings | None:
        if self.values is not None:
            return self._with_values(self.values)
        return None if self.most is not None and self.least > self.most else self

    def _with_values(self, values: tuple[str, ...]) -> Strings | None:
        kept = tuple(value for value in values if self._is_between(value) and value not in self.excluded and self._matches(value))
        return Strings(values=kept) if kept else None

    def _is_between(self, value: str) -> bool:
        return len(value) >= self.least and (self.most is None or len(value) <= self.most)

    def _matches(self, value: str) -> bool:
        held = [pattern.holds(value) for pattern in self.patterns]
        avoided = [pattern.holds(value) for pattern in self.avoided]
        if False in held or True in avoided:
            return False
        if None in held or None in avoided:
            raise Inexact("whether this value is of the format is not decided here")
        return True

    def complement(self) -> list[Strings]:
        if self.values is not None:
            return [Strings(excluded=self.values)]
        outside = [Strings(most=self.least - 1)] if self.least else []
        outside += [Strings(least=self.most + 1)] if self.most is not None else []
        outside += [Strings(avoided=(pattern,)) for pattern in self.patterns]
        outside += [Strings(patterns=(pattern,)) for pattern in self.avoided]
        return outside + ([Strings(values=self.excluded)] if self.excluded else [])

    def without(self, other: Strings) -> list[Strings]:
        """Those that are not in the other."""
        patterns = tuple(pattern for pattern in other.patterns if pattern not in self.patterns)
        outside = replace(other, patterns=patterns).complement()
        return [both for part in outside if (both := self.meet(part)) is not None]

    def language_of_patterns(self) -> StringSet:
        """The strings that the patterns and the excluded values leave; those of which it is not known are left out."""
        language = StringSet.all_of([*(pattern.strings for pattern in self.patterns), *(pattern.others for pattern in self.avoided)])
        return language.intersection(StringSet.of_strings(self.excluded).complement()) if self.excluded else language

    @property
    def is_exact(self) -> bool:
        """Whether it is known of every string if it belongs."""
        return all(pattern.maybe is None for pattern in (*self.patterns, *self.avoided))

    def language(self) -> StringSet:
        """All of it as a set."""
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
        more = self._patterns_as_schemas()
        if len(more) > 1:
            return {"allOf": [schema, *more]}
        return {**schema, **more[0]} if more and isinstance(more[0], dict) else schema

    def _patterns_as_schemas(self) -> list[Json]:
        """One for each pattern, and one for all that must not be: their common automaton may be far larger than all of them."""
        more = [pattern.to_schema() for pattern in self.patterns]
        others = replace(self, patterns=(), avoided=self._avoided_within_patterns()).language_of_patterns()
        if others.is_everything:
            return more
        return [*more, {"type": "string", "pattern": anchored_pattern(others)}]

    def _avoided_within_patterns(self) -> tuple[Pattern, ...]:
        """Without those that match nothing of what the patterns do: what stands for many kinds of values often needs a large automaton."""
        if not (self.patterns and self.avoided):
            return self.avoided
        try:
            inside = StringSet.all_of(pattern.strings for pattern in self.patterns)
        except UnsupportedGrammar:
            return self.avoided
        return tuple(pattern for pattern in self.avoided if pattern.may_hold_any(inside))


def _union(left: tuple[T, ...], right: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*left, *right)))
