"""Schemas that only endless values match: `{"properties": {"a": {"$ref": "#"}}, "required": ["a"]}`.

A grammar of such a schema begins well and never ends. The question is the one of productive symbols in a context-free grammar: a
schema has a finite value if all that every value of it must contain has one (Hopcroft and Ullman, 1979, section 4.4).
"""

from __future__ import annotations

from collections import defaultdict, deque

from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, dict_at, list_at
from grammar_service.schema.pointer import join
from grammar_service.schema.references import References


def endless_schema(references: References, closed: bool) -> str | None:
    """The pointer of the first schema that no finite value matches, None where there is none; time linear in the document.

    A `closed` schema that names no type is read as of the one that it is about; an open one has values of all the other types. Only
    recursion is looked at: `false` and contradictions between keywords are others' concern.
    """
    needs = {pointer: _needs(pointer, schema, references, closed) for pointer, schema in references.schemas.items()}
    used_by: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for pointer, groups in needs.items():
        for index, group in enumerate(groups):
            for needed in group:
                used_by[needed].append((pointer, index))
    open_groups = {pointer: set(range(len(groups))) for pointer, groups in needs.items()}
    finite = deque(pointer for pointer, groups in open_groups.items() if not groups)
    while finite:
        for pointer, index in used_by[finite.popleft()]:
            if index in open_groups[pointer]:
                open_groups[pointer].discard(index)
                if not open_groups[pointer]:
                    finite.append(pointer)
    return next((pointer for pointer, groups in open_groups.items() if groups), None)


def _needs(pointer: str, schema: Json, references: References, closed: bool) -> list[list[str]]:
    """Of each group, at least one schema must have a finite value for this one to have one."""
    if not isinstance(schema, dict):
        return []
    needs = [[references.target_of(pointer)]] if "$ref" in schema else []
    for keyword in ("anyOf", "oneOf"):
        if branches := list_at(schema, keyword):
            needs.append([join(pointer, keyword, index) for index in range(len(branches))])
    needs += [[join(pointer, "allOf", index)] for index in range(len(list_at(schema, "allOf")))]
    if _is_only(schema, "object", closed):
        needs += [[needed] for needed in _members(pointer, schema)]
    if _is_only(schema, "array", closed):
        needs += [[needed] for needed in _items(pointer, schema)]
    return needs


def _is_only(schema: Schema, kind: str, closed: bool) -> bool:
    """No value of another type matches, as far as `type` says."""
    return schema.get("type", kind if closed else None) in (kind, [kind])


def _members(pointer: str, schema: Schema) -> list[str]:
    properties = dict_at(schema, "properties")
    return [join(pointer, "properties", str(name)) for name in list_at(schema, "required") if name in properties]


def _items(pointer: str, schema: Schema) -> list[str]:
    fewest, listed = schema.get("minItems", 0), len(list_at(schema, "prefixItems"))
    if not isinstance(fewest, (int, float)):
        return []
    needed = [join(pointer, "prefixItems", index) for index in range(min(listed, int(fewest)))]
    return [*needed, join(pointer, "items")] if fewest > listed and "items" in schema else needed
