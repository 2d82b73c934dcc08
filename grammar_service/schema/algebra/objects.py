"""Objects by their properties."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations

from grammar_service.regexes.string_set import StringSet
from grammar_service.schema.algebra.expression import ANYTHING, NOTHING, Empty, Expression, every, negated
from grammar_service.schema.algebra.inexact import Inexact

MAX_REGIONS = 12
"""Kinds of names with something else asked of each. Three patterns that may overlap make 8 (5 ms), four 16 (11 ms), five 32 (33 ms)."""
MAX_NAMES = 2000
"""Named properties of an intersection: 90 ms for as many."""
MAX_CHOSEN = 4
"""Names of which every choice is listed."""

Region = tuple[StringSet, Expression]
Named = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """The properties that have been evaluated, in the sense of `unevaluatedProperties`."""

    names: frozenset[str] = frozenset()
    others: StringSet | None = None

    def union(self, other: Seen) -> Seen:
        others = self.others or other.others
        if self.others is not None and other.others is not None:
            others = self.others.union(other.others)
        return Seen(self.names | other.names, others)

    def __contains__(self, name: str) -> bool:
        return name in self.names or (self.others is not None and name in self.others)


def regions_of(patterns: list[tuple[StringSet, Expression]], rest: Expression) -> tuple[Region, ...]:
    """Disjoint sets of names, with what `patternProperties` ask of each, and `rest` of those that no pattern matches."""
    found: list[tuple[StringSet, tuple[Expression, ...]]] = [(StringSet.everything(), ())]
    for names, expression in patterns:
        halves = [(within, names, (*asked, expression)) for within, asked in found]
        halves += [(within, names.complement(), asked) for within, asked in found]
        split = [(within.intersection(half), asked) for within, half, asked in halves]
        found = [(within, asked) for within, asked in split if not within.is_empty]
        _check_count(len(found))
    return joined([(within, every(*asked) if asked else rest) for within, asked in found])


def joined(regions: list[Region]) -> tuple[Region, ...]:
    """Regions of which the same is asked, as one."""
    sets: dict[Expression, StringSet] = {}
    for names, expression in regions:
        sets[expression] = names if expression not in sets else sets[expression].union(names)
    return tuple((names, expression) for expression, names in sets.items())


def _check_count(regions: int) -> None:
    if regions > MAX_REGIONS:
        raise Inexact(f"more than {MAX_REGIONS} kinds of property names are not combined")


EVERY_NAME: tuple[Region, ...] = ((StringSet.everything(), ANYTHING),)


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects of `least` to `most` properties (None: no bound), with all `required` ones. A property that is `named` satisfies its
    expression, any other that of the region its name is in; regions are disjoint and hold all names. They are written in this order: what
    `properties` declare, and behind that what is named by other keywords alone, `undeclared`."""

    named: Named = ()
    regions: tuple[Region, ...] = EVERY_NAME
    required: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None
    seen: Seen = Seen()
    undeclared: frozenset[str] = field(default=frozenset(), compare=False)

    @classmethod
    def naming(cls, name: str, asked: Expression, required: tuple[str, ...] = ()) -> Objects:
        """As a keyword does that declares nothing."""
        return cls(((name, asked),), required=required, undeclared=frozenset({name}))

    def meet(self, other: Objects) -> Objects | None:
        """Both at once; None where nothing is left."""
        mine, theirs = dict(self.named), dict(other.named)
        declared = dict.fromkeys([*self._declared(), *other._declared()])
        names = dict.fromkeys([*declared, *mine, *theirs])
        if len(names) > MAX_NAMES:
            raise Inexact(f"objects of more than {MAX_NAMES} properties are not combined")
        bounds = [most for most in (self.most, other.most) if most is not None]
        return Objects(
            tuple((name, every(self._asked(name, mine), other._asked(name, theirs))) for name in names),
            _crossed(self.regions, other.regions),
            tuple(dict.fromkeys((*self.required, *other.required))),
            max(self.least, other.least),
            min(bounds) if bounds else None,
            self.seen.union(other.seen),
            frozenset(names.keys() - declared.keys()),
        ).tidy()

    def _declared(self) -> list[str]:
        return [name for name, _ in self.named if name not in self.undeclared]

    def asked_of(self, name: str) -> Expression:
        return self._asked(name, dict(self.named))

    def _asked(self, name: str, named: dict[str, Expression]) -> Expression:
        if name in named:
            return named[name]
        if len(self.regions) == 1:
            return self.regions[0][1]
        return next(expression for names, expression in self.regions if name in names)

    def tidy(self) -> Objects | None:
        """The same objects, every required property named; None if there are plainly none."""
        named = dict(self.named)
        unnamed = [name for name in self.required if name not in named]
        named |= {name: self._asked(name, named) for name in unnamed}
        fewest = max(self.least, len(self.required))
        if any(named[name] == NOTHING for name in self.required) or (self.most is not None and self.most < fewest):
            return None
        least = 0 if self.least <= len(self.required) else self.least
        return replace(self, named=tuple(named.items()), least=least, undeclared=self.undeclared.union(unnamed))

    def complement(self) -> list[Objects]:
        """Raises Inexact: some property of a kind, whatever its name."""
        return Objects().without(self, lambda expression: expression == NOTHING)

    def without(self, other: Objects, empty: Empty) -> list[Objects]:
        """Those that are not among the others. Raises Inexact: for some property of a kind, whatever its name."""
        outside = self._with_further_name(other, empty)
        outside += [Objects(most=other.least - 1)] if other.least > self.least else []
        outside += [Objects(least=other.most + 1)] if other.most is not None else []
        missing = set(other.required) - set(self.required)
        for name in dict.fromkeys([*other.required, *dict(other.named), *dict(self.named)]):
            asked = other.asked_of(name)
            differs = asked not in (ANYTHING, self.asked_of(name))
            if differs or name in missing:
                # Without it, or, where that is no difference, only with it.
                outside.append(Objects.naming(name, negated(asked) if differs else NOTHING, () if name in missing else (name,)))
        return [both for shape in outside if (both := self.meet(shape)) is not None]

    def _with_further_name(self, other: Objects, empty: Empty) -> list[Objects]:
        """Objects with a property that neither names and the others do not allow: each set of the known names, and one more."""
        pairs = [(here.intersection(there), mine, also) for here, mine in self.regions for there, also in other.regions if mine != NOTHING]
        if all(also in (ANYTHING, mine) for _, mine, also in pairs):
            return []
        names = tuple(dict.fromkeys([*dict(other.named), *dict(self.named)]))
        if len(pairs) > 1:
            further = StringSet.of_strings(names).complement()
            pairs = [pair for pair in pairs if not pair[0].intersection(further).is_empty]
        optional = [name for name in names if name not in self.required and self.asked_of(name) != NOTHING]
        if len(optional) > MAX_CHOSEN or not all(empty(every(mine, also)) for _, mine, also in pairs):
            raise Inexact("objects with some property of a kind, whatever its name, cannot be described")
        chosen = [some for count in range(len(optional) + 1) for some in combinations(optional, count)]
        least = len(self.required) + 1
        return [
            Objects(
                tuple((name, ANYTHING if name in some else NOTHING) for name in optional),
                required=some,
                least=least + len(some),
                undeclared=frozenset(optional),
            )
            for some in chosen
        ]


def _crossed(left: tuple[Region, ...], right: tuple[Region, ...]) -> tuple[Region, ...]:
    pairs = [(names.intersection(others), every(asked, also)) for names, asked in left for others, also in right]
    regions = joined([(names, asked) for names, asked in pairs if not names.is_empty])
    _check_count(len(regions))
    return regions
