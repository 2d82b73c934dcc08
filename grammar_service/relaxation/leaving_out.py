"""A schema with one assertion fewer, so that it allows all that it allowed before, and more.

An assertion cannot be left out everywhere. Under `not` and `if`, among the branches of a `oneOf`, and in a `contains` that has a
`maxContains`, a schema that allows more makes the whole allow less: there the applicator itself goes, and a `oneOf` becomes an `anyOf`.
`unevaluatedProperties` and `unevaluatedItems` depend on what others have evaluated, so they go before anything that evaluates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grammar_service.errors import GrammarError
from grammar_service.schema.json_text import Json, text_of
from grammar_service.schema.keywords import BY_TYPE, Schema, list_at, subschemas, walk
from grammar_service.schema.normal_form.normal import Normaliser
from grammar_service.schema.pointer import join, resolve
from grammar_service.schema.references import References

_UNEVALUATED = {"unevaluatedProperties": "additionalProperties", "unevaluatedItems": "items"}
"""And what says, where they go, that there may be others."""
_EVALUATE = frozenset(
    {"items", "prefixItems", "contains", "minContains", "maxContains", "properties", "additionalProperties", "patternProperties"}
) | {*_UNEVALUATED, "dependentSchemas"}
_LEAVES = frozenset().union(*BY_TYPE.values()) - _EVALUATE | {"type", "enum", "const"}
"""Keywords that apply no schema: leaving one out changes nothing but what it asserts."""
_LEFT_OUT_WHOLE = (_LEAVES | _EVALUATE | {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "propertyNames"}) - {"type"}
"""Keywords that may hold much."""
_TOGETHER = {
    **dict.fromkeys(("contains", "minContains", "maxContains"), ("contains", "minContains", "maxContains")),
    **dict.fromkeys(("if", "then", "else"), ("if", "then", "else")),
    "properties": ("properties", "patternProperties"),
    "prefixItems": ("prefixItems", "items"),
}
"""Keywords that say something else without the others."""
_OPENED = {
    "properties": "additionalProperties",
    "patternProperties": "additionalProperties",
    "additionalProperties": "additionalProperties",
    "prefixItems": "items",
    "items": "items",
    **_UNEVALUATED,
}
"""What must say `true` where a keyword goes: it was about the rest of what the keyword was about."""
_KEPT = frozenset({"$schema", "$vocabulary", "$id", "$dynamicRef", "$recursiveRef"})
"""Without them the document would not be understood as its author meant it."""
_READ_AS = {"pattern": "format", "minimum": "multipleOf"}
"""Keywords of the normal form, and those that it writes so."""
_DEFINITIONS = frozenset({"$defs", "definitions"})

Place = tuple[str, str | None]
"""The pointer of a schema, and one of its keywords; None: the schema as a whole."""


def is_closed(document: Json) -> bool:
    """Whether the normal form of a document closes its objects (`normal_form`), which it does nowhere if schemas are composed anywhere."""
    try:
        return Normaliser(References(dict(walk(document)))).closes
    except GrammarError:
        return True


def left_out(document: Json, pointer: str) -> tuple[Json, list[str]] | None:
    """A document that allows more, one step nearer to being without what stands at `pointer`, and the pointers of what has been left out in
    that step. None where it must not be left out. `document` is one of draft 2020-12 (`schema.dialects`).

    Raises:
        GrammarError: as `References`.
    """
    schemas = dict(walk(document))
    place = _place(schemas, as_written(document, pointer))
    if place[1] in _KEPT or _leaves_document(schemas[place[0]], place[1]):
        return None
    places = [place]
    if place[1] not in _LEAVES:
        dependent = [(owner, word) for owner, schema in schemas.items() for word in _UNEVALUATED if _says(schema, word)]
        places = [*dependent] or places
    references = References(schemas)
    reversing = [found for owner, _ in places for found in _reversing(references, owner)]
    gone = []
    for owner, keyword in dict.fromkeys(reversing or places):
        # One may have stood in another.
        if stands(document, owner):
            document = _without(document, owner, keyword)
            gone.append(owner if keyword is None else join(owner, keyword))
    return document, gone


def heaviest(document: Json) -> str:
    """The pointer of the innermost keyword that holds more than half of a document; where none does, of the one that holds most. The root's
    where there is no keyword to leave out."""
    sizes = {
        join(pointer, word): len(text_of(value))
        for pointer, schema in walk(document)
        if isinstance(schema, dict)
        for word, value in schema.items()
        if word in _LEFT_OUT_WHOLE
    }
    half = len(text_of(document)) / 2
    innermost = min((place for place, size in sizes.items() if size > half), key=lambda place: sizes[place], default=None)
    return max(sizes, key=lambda place: sizes[place], default="") if innermost is None else innermost


def _says(schema: Json, keyword: str) -> bool:
    return isinstance(schema, dict) and keyword in schema


def _leaves_document(schema: Json, keyword: str | None) -> bool:
    """A reference that nobody would follow when the answer is checked either."""
    return keyword == "$ref" and isinstance(schema, dict) and not str(schema["$ref"]).startswith("#")


def as_written(document: Json, pointer: str) -> str:
    """The pointer where a `oneOf` has been read as an `anyOf`."""
    written = ""
    for step in pointer.split("/")[1:]:
        is_read = step == "anyOf" and _holds(document, written, "oneOf") and not _holds(document, written, "anyOf")
        written = f"{written}/{'oneOf' if is_read else step}"
    return written


def stands(document: Json, pointer: str) -> bool:
    """Whether there is still something at a pointer."""
    try:
        resolve(document, as_written(document, pointer))
    except LookupError:
        return False
    return True


def _holds(document: Json, pointer: str, keyword: str) -> bool:
    try:
        return _says(resolve(document, pointer), keyword)
    except LookupError:
        return False


def _place(schemas: Mapping[str, Json], pointer: str) -> Place:
    """The innermost schema that the pointer leads into, and which of its keywords."""
    steps = pointer.split("/")
    for length in range(len(steps), 0, -1):
        owner = "/".join(steps[:length])
        if owner in schemas:
            keyword = steps[length].replace("~1", "/").replace("~0", "~") if length < len(steps) else ""
            said = (word for word in (keyword, _READ_AS.get(keyword, "")) if _says(schemas[owner], word))
            return owner, next(said, None)
    return "", None


def _reversing(references: References, owner: str) -> list[Place]:
    """The applicators on a way to a schema that allow less if it allows more, the outermost ones."""
    plain = _reached(references, [""], within_reversing=False)
    return [
        (pointer, keyword)
        for pointer in plain
        for keyword in _words(references.schemas[pointer])
        if _reverses(references.schemas[pointer], keyword) and owner in _reached(references, list(_under(references, pointer, keyword)))
    ]


def _words(schema: Json) -> list[str]:
    return list(schema) if isinstance(schema, dict) else []


def _reverses(schema: Json, keyword: str) -> bool:
    if not isinstance(schema, dict) or keyword not in schema:
        return False
    match keyword:
        case "not" | "if":
            return True
        case "contains":
            return "maxContains" in schema
        case "oneOf":
            return len(list_at(schema, keyword)) > 1
        case _:
            return False


def _under(references: References, pointer: str, keyword: str) -> Iterator[str]:
    """The subschemas that a keyword applies."""
    schema = references.schemas[pointer]
    for inner, _ in subschemas(pointer, {keyword: schema[keyword]} if isinstance(schema, dict) else {}):
        yield inner


def _reached(references: References, starts: list[str], within_reversing: bool = True) -> dict[str, None]:
    """The schemas that those at `starts` apply, directly or not, themselves included."""
    reached, waiting = dict.fromkeys(starts), list(starts)
    while waiting:
        pointer = waiting.pop()
        schema = references.schemas[pointer]
        kept = [word for word in _words(schema) if word not in _DEFINITIONS and (within_reversing or not _reverses(schema, word))]
        following = [inner for keyword in kept for inner in _under(references, pointer, keyword)]
        if "$ref" in kept:
            following.append(references.target_of(pointer))
        waiting += [inner for inner in following if inner not in reached]
        reached.update(dict.fromkeys(following))
    return reached


def _without(document: Json, owner: str, keyword: str | None) -> Json:
    """The document without a keyword of a schema; or, where nothing less would do, without all that the schema says."""
    schema = resolve(document, owner)
    less = _less(schema, keyword) if isinstance(schema, dict) and keyword is not None else schema
    if less == schema:
        definitions = {name: value for name, value in schema.items() if name in _DEFINITIONS} if isinstance(schema, dict) else {}
        less = definitions if definitions or not owner else True
    return _replaced(document, owner.split("/")[1:], less)


def _less(schema: Schema, keyword: str) -> Schema:
    gone = _TOGETHER.get(keyword, (keyword,))
    less = {name: value for name, value in schema.items() if name not in gone}
    if keyword == "oneOf":
        return _any_of(less, schema["oneOf"])
    if (rest := _OPENED.get(keyword)) is not None and (keyword not in _UNEVALUATED or rest not in schema):
        less[rest] = True
    return less


def _any_of(schema: Schema, branches: Json) -> Schema:
    if "anyOf" not in schema:
        return {**schema, "anyOf": branches}
    others = schema.get("allOf")
    return {**schema, "allOf": [*(others if isinstance(others, list) else []), {"anyOf": branches}]}


def _replaced(document: Json, steps: list[str], value: Json) -> Json:
    """A copy with another value at a pointer; what is not on the way to it is shared."""
    if not steps:
        return value
    step = steps[0].replace("~1", "/").replace("~0", "~")
    if isinstance(document, list):
        return [_replaced(item, steps[1:], value) if index == int(step) else item for index, item in enumerate(document)]
    assert isinstance(document, dict), "the pointer leads to a schema"
    return {name: _replaced(inner, steps[1:], value) if name == step else inner for name, inner in document.items()}
