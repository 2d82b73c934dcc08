"""A schema for a reader who goes by `type`, `properties` and `items` alone, follows no references and looks into no alternatives."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from grammar_service.errors import GrammarTooLarge
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, dict_at, list_at
from grammar_service.schema.pointer import of_fragment, resolve
from grammar_service.tags.arguments import EVERY_TYPE, PossibleTypes, inferred_types, is_inferred

MOST_READ = 2000
"""Parts, members, branches and values that are looked at for one schema, those that are met again included: 2 to 4 ms."""
MOST_DEPTH = 30


_TOO_LARGE = "too many parts, or too many inside one another"
_Part = tuple[Json, frozenset[str]]


def with_references_inlined(schema: Schema) -> tuple[Schema, int]:
    """The schema with subschemas of `$ref`, `anyOf`, `oneOf` and `allOf` copied to where they apply, and how much was read for that. Of
    alternatives there is what any of them says, so that the copy is no constraint. Unchanged where there is more to read than MOST_READ;
    a reference to what it stands in is not followed.
    """
    inlining = _Inlining(schema)
    try:
        return inlining.of(schema), inlining.read
    except GrammarTooLarge:
        return schema, inlining.read


class _Inlining:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._possible = PossibleTypes(root)
        self.read = 0

    def of(self, schema: Schema, followed: frozenset[str] = frozenset(), depth: int = 0) -> Schema:
        """`followed`: the references that led here."""
        if depth > MOST_DEPTH:
            raise GrammarTooLarge(_TOO_LARGE)
        members, items = dict[str, list[_Part]](), list[_Part]()
        for source, via in self._of_same_value(schema, followed):
            for name, member in dict_at(source, "properties").items():
                members.setdefault(name, []).append((member, via))
            items += [(item, via) for item in _items(source)]
        seen = {**schema, **self._types(schema)}
        if members:
            seen["properties"] = {name: self._joined(found, depth) for name, found in members.items()}
        if items:
            seen["items"] = self._joined(items, depth)
        return seen

    def _joined(self, found: Sequence[_Part], depth: int) -> Json:
        different = [*{id(schema): schema for schema, _ in found}.values()]
        followed = frozenset[str]().union(*(via for _, via in found))
        one: Json = different[0] if len(different) == 1 else {"anyOf": different}
        return self.of(one, followed, depth + 1) if isinstance(one, dict) else one

    def _types(self, schema: Schema) -> Schema:
        """Those that the reader would not find. Chat templates look for one, not for a list."""
        types = self._possible.of(schema)
        if types >= EVERY_TYPE or not types <= EVERY_TYPE | {"integer"}:
            return {}
        told = inferred_types(schema)
        missing = [kind for kind in sorted(types) if not is_inferred(kind, told)]
        if not missing:
            return {}
        return {"type": missing[0] if len(missing) == 1 else [*missing]}

    def _of_same_value(self, schema: Schema, followed: frozenset[str]) -> Iterator[tuple[Schema, frozenset[str]]]:
        """The schema and those that it applies in place, each with the references that lead there."""
        waiting, met = deque[_Part]([(schema, followed)]), set[int]()
        while waiting:
            one, via = waiting.popleft()
            if not isinstance(one, dict) or id(one) in met:
                continue
            met.add(id(one))
            self.read += 1 + len(str(one.get("$ref"))) + sum(len(value) for value in one.values() if isinstance(value, dict | list))
            if self.read > MOST_READ:
                raise GrammarTooLarge(_TOO_LARGE)
            yield one, via
            for keyword in ("anyOf", "oneOf", "allOf"):
                waiting += ((branch, via) for branch in list_at(one, keyword))
            reference = one.get("$ref")
            if isinstance(reference, str) and reference.startswith("#") and reference not in via:
                with suppress(LookupError, UnicodeDecodeError):
                    waiting.append((resolve(self._root, of_fragment(reference[1:])), via | {reference}))


def _items(schema: Schema) -> Iterator[Json]:
    yield from (item for item in (*list_at(schema, "prefixItems"), schema.get("items")) if isinstance(item, dict))
