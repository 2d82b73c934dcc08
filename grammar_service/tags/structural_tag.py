"""Structural tags: free text, tags and sequences around JSON Schemas, regexes and EBNF, in the formats of xgrammar 0.2.8.

Two forms are read: `{"type": "structural_tag", "format": …}`, and the older `{"structures": [{"begin", "schema", "end"}],
"triggers": […]}`, which means `triggered_tags`. What the library would weaken is refused by name: formats and budgets of token ids
(special tokens stand for no text here, and `max_tokens` binds masks but not accepted tokens), XML styles, `any_order` (it drops
`required`), `excludes` inside JSON (it drops length bounds), and triggers inside one another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from grammar_service.errors import GrammarError, GrammarTooLarge, InvalidGrammar, UnsupportedGrammar
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import SET_EFFORT
from grammar_service.schema.fault import AllowList, Fault
from grammar_service.schema.json_schema import JsonSchema, schema_of
from grammar_service.schema.json_text import Json, parse_json
from grammar_service.schema.pointer import join
from grammar_service.tags.fields import (
    Object,
    any_text_at,
    check_names,
    check_patterns,
    check_triggers,
    count_at,
    declared_order_at,
    ebnf_at,
    end_at,
    flag_at,
    items_at,
    no_excludes_at,
    no_token_budget_at,
    object_at,
    placed,
    plain_style_at,
    regex_at,
    size_at,
    text_at,
    texts_at,
    token_free_text_at,
    whitespace_at,
)

REMEMBERED = 4
MAX_FORMATS = 1000
"""Formats in one tag: compile time grows with the square of the number of tags, 500 of them with small schemas take two seconds."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The schema of a `json_schema` format, the schema's pointer in the whole tag, and the `max_whitespace_cnt` that it asks for."""

    schema: JsonSchema
    pointer: str
    max_whitespace: int | None


def tag_faults(text: str, faults_of: AllowList, closed: bool = True, formats: bool = True) -> list[Fault]:
    """What the backend of an allow-list would not enforce exactly of the embedded schemas, at pointers into the tag. Nothing is
    compiled.

    Raises:
        InvalidGrammar, UnsupportedGrammar, GrammarTooLarge: not a structural tag, an unknown or unsupported format or field, more
            than MAX_FORMATS formats, or an embedded schema, regex or grammar that is at fault itself.
    """
    embedded = embedded_schemas(text, closed, formats)
    return [fault.below(e.pointer) for e in embedded for fault in e.schema.form_for(faults_of).faults]


@lru_cache(maxsize=REMEMBERED)
def embedded_schemas(text: str, closed: bool = True, formats: bool = True) -> tuple[Embedded, ...]:
    """The schemas in a tag, in their order. The last tags are remembered: they are judged, and their warnings told. Raises as
    `tag_faults`."""
    found: list[Embedded] = []

    def collect(embedded: Embedded) -> str:
        found.append(embedded)
        return ""

    to_library_format(text, collect, closed, formats)
    return tuple(found)


def to_library_format(text: str, to_ebnf: Callable[[Embedded], str], closed: bool = True, formats: bool = True) -> Json:
    """The tag in the library's newer form, with each embedded schema as the EBNF that `to_ebnf` makes of it.

    EBNF, since the library reads an embedded schema in its strict mode and with any amount of any whitespace. Raises as `tag_faults`.
    """
    return _Reader(to_ebnf, closed, formats).document(parse_json(text, "the structural tag"))


class _Reader:
    """One walk over a tag, which it copies; recursion is bounded by the nesting that `parse_json` admits.

    `_ends` are the strings that end the innermost tag: the library keeps them out of free text inside it.
    """

    def __init__(self, to_ebnf: Callable[[Embedded], str], closed: bool, formats: bool) -> None:
        self._closed = closed
        self._formats_hold = formats
        self._to_ebnf = to_ebnf
        self._effort = Effort(SET_EFFORT)
        self._formats = 0
        self._ends: list[str] = []

    def document(self, value: Json) -> Json:
        tag = object_at(value, "a structural tag", "")
        if tag.get("type", "structural_tag") != "structural_tag":
            raise InvalidGrammar('`type` must be "structural_tag"', "/type")
        if "structures" in tag:
            check_names(tag, {"structures", "triggers"}, {"type"}, "")
            return {"type": "structural_tag", "format": self._older(tag)}
        check_names(tag, {"format"}, {"type"}, "")
        return {"type": "structural_tag", "format": self.format(tag["format"], "/format")}

    def format(self, value: Json, pointer: str) -> Json:
        given = object_at(value, "a format", pointer)
        kind = given.get("type")
        if not isinstance(kind, str):
            raise InvalidGrammar("a format needs a `type`", pointer)
        if kind not in _FORMATS:
            _refuse_kind(kind, join(pointer, "type"))
        self._count(pointer)
        required, optional = _FORMATS[kind]
        check_names(given, {*required}, {*optional, "type"}, pointer)
        if kind == "tag":
            return self._tag(given, pointer)
        readers = {**required, **optional}
        fields = {name: readers[name](self, member, join(pointer, name)) for name, member in given.items() if name != "type"}
        if kind == "json_schema":
            return self._json(fields, join(pointer, "json_schema"))
        self._check_together(kind, fields, pointer)
        return {"type": kind, **fields}

    def formats(self, value: Json, pointer: str) -> Json:
        return [self.format(item, join(pointer, index)) for index, item in enumerate(items_at(value, pointer))]

    def tags(self, value: Json, pointer: str) -> Json:
        """An array of formats that are all tags, and may leave their `type` out."""
        tags: list[Json] = []
        for index, item in enumerate(items_at(value, pointer)):
            place = join(pointer, index)
            tag: Object = {"type": "tag", **object_at(item, "a tag", place)}
            if tag["type"] != "tag":
                raise InvalidGrammar('only formats of type "tag" may stand here', join(place, "type"))
            tags.append(self.format(tag, place))
        return tags

    def rules(self, value: Json, pointer: str) -> Json:
        """An array of pairs of a string and the format that follows it."""
        rules: list[Json] = []
        for index, rule in enumerate(items_at(value, pointer)):
            place = join(pointer, index)
            if not isinstance(rule, list) or len(rule) != 2:
                raise InvalidGrammar("a rule must be an array of a string and a format", place)
            rules.append([text_at(rule[0], join(place, 0)), self.format(rule[1], join(place, 1))])
        return rules

    def schema(self, value: Json, pointer: str) -> Json:
        """Only the shape: `_json` reads the schema, once its options are known."""
        if not isinstance(value, dict | bool):
            raise InvalidGrammar("a schema must be an object or a boolean", pointer)
        return value

    def regex(self, value: Json, pointer: str) -> Json:
        return regex_at(value, pointer, self._effort)

    def _count(self, pointer: str) -> None:
        self._formats += 1
        if self._formats > MAX_FORMATS:
            raise GrammarTooLarge(f"the structural tag has more than {MAX_FORMATS} formats", pointer)

    def _tag(self, given: Object, pointer: str) -> Json:
        begin = token_free_text_at(given["begin"], join(pointer, "begin"))
        end = end_at(given["end"], join(pointer, "end"))
        outside, self._ends = self._ends, _strings(end)
        content = self.format(given["content"], join(pointer, "content"))
        self._ends = outside
        return {"type": "tag", "begin": begin, "content": content, "end": end}

    def _json(self, fields: Object, pointer: str) -> Json:
        most = fields.get("max_whitespace_cnt")
        try:
            schema = schema_of(fields["json_schema"], self._closed, self._formats_hold)
        except GrammarError as error:
            raise placed(error, pointer) from None
        return {"type": "grammar", "grammar": self._to_ebnf(Embedded(schema, pointer, most if isinstance(most, int) else None))}

    def _older(self, tag: Object) -> Json:
        triggers = texts_at(items_at(tag["triggers"], "/triggers"), "/triggers")
        tags = [self._structure(item, join("/structures", index)) for index, item in enumerate(items_at(tag["structures"], "/structures"))]
        fields: Object = {"triggers": triggers, "tags": tags}
        self._check_dispatch(_strings(triggers), fields, "/triggers", "/structures")
        return {"type": "triggered_tags", **fields}

    def _structure(self, value: Json, pointer: str) -> Json:
        given = object_at(value, "a structure", pointer)
        check_names(given, {"begin", "schema", "end"}, set(), pointer)
        self._count(pointer)
        begin, end = (any_text_at(given[name], join(pointer, name)) for name in ("begin", "end"))
        schema = self.schema(given["schema"], join(pointer, "schema"))
        return {"type": "tag", "begin": begin, "content": self._json({"json_schema": schema}, join(pointer, "schema")), "end": end}

    def _check_together(self, kind: str, fields: Object, pointer: str) -> None:
        """Rules about several fields of one format."""
        if kind == "triggered_tags":
            self._check_dispatch(_strings(fields["triggers"]), fields, join(pointer, "triggers"), join(pointer, "tags"))
        elif kind == "dispatch":
            patterns = [str(rule[0]) for rule in items_at(fields["rules"], pointer) if isinstance(rule, list)]
            check_patterns(patterns, [*_strings(fields.get("excludes")), *self._ends], join(pointer, "rules"))
        elif kind == "repeat":
            least, most = count_at(fields["min"], join(pointer, "min")), count_at(fields["max"], join(pointer, "max"))
            if least < 0 or most < -1 or -1 < most < least:
                raise InvalidGrammar("`min` must be at least 0, and at most `max`, where -1 means no bound", join(pointer, "min"))

    def _check_dispatch(self, triggers: list[str], fields: Object, at_triggers: str, at_tags: str) -> None:
        check_patterns(triggers, [*_strings(fields.get("excludes")), *self._ends], at_triggers)
        tags = items_at(fields["tags"], at_tags)
        check_triggers(triggers, [str(tag["begin"]) for tag in tags if isinstance(tag, dict)], at_triggers, at_tags)


def _strings(value: Json) -> list[str]:
    """The strings of a field that is one string or an array of them; without the empty ones, which match nothing."""
    return [str(item) for item in (value if isinstance(value, list) else [value]) if item]


def _refuse_kind(kind: str, pointer: str) -> NoReturn:
    if kind in _TOKEN_FORMATS:
        raise UnsupportedGrammar("formats of token ids are not supported, since special tokens stand for no text", pointer)
    if kind == "qwen_xml_parameter":
        raise UnsupportedGrammar("arguments in an XML style are not enforced exactly", pointer)
    raise UnsupportedGrammar(f"{kind[:40]!r} is not a format of structural tags", pointer)


_TOKEN_FORMATS = frozenset({"token", "exclude_token", "any_tokens", "token_triggered_tags", "token_dispatch"})
_Read = Callable[[_Reader, Json, str], Json]


def _plain(read: Callable[[Json, str], Json]) -> _Read:
    return lambda _, value, pointer: read(value, pointer)


_TEXTS, _FLAG, _COUNT = _plain(texts_at), _plain(flag_at), _plain(count_at)
_JSON_OPTIONS: dict[str, _Read] = {
    "style": _plain(plain_style_at),
    "any_order": _plain(declared_order_at),
    "max_whitespace_cnt": _plain(whitespace_at),
    "excludes": _plain(no_excludes_at),
}
_TAG_OPTIONS: dict[str, _Read] = {"at_least_one": _FLAG, "stop_after_first": _FLAG}
_CONTENT: dict[str, _Read] = {"content": _Reader.format}
_FORMATS: dict[str, tuple[dict[str, _Read], dict[str, _Read]]] = {
    "const_string": ({"value": _plain(any_text_at)}, {}),
    "any_text": ({}, {"excludes": _TEXTS, "max_chars": _plain(size_at), "max_tokens": _plain(no_token_budget_at)}),
    "json_schema": ({"json_schema": _Reader.schema}, _JSON_OPTIONS),
    "regex": ({"pattern": _Reader.regex}, {}),
    "grammar": ({"grammar": _plain(ebnf_at)}, {}),
    "sequence": ({"elements": _Reader.formats}, {}),
    "or": ({"elements": _Reader.formats}, {}),
    "optional": (_CONTENT, {}),
    "plus": (_CONTENT, {}),
    "star": (_CONTENT, {}),
    "repeat": ({"min": _COUNT, "max": _COUNT, **_CONTENT}, {}),
    "tag": ({"begin": _plain(token_free_text_at), "end": _plain(end_at), **_CONTENT}, {}),
    "triggered_tags": ({"triggers": _TEXTS, "tags": _Reader.tags}, {**_TAG_OPTIONS, "excludes": _TEXTS}),
    "tags_with_separator": ({"tags": _Reader.tags, "separator": _plain(any_text_at)}, _TAG_OPTIONS),
    "dispatch": ({"rules": _Reader.rules}, {"loop": _FLAG, "excludes": _TEXTS}),
}
"""Required and optional fields of each format, and what reads them."""
