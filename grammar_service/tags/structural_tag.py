"""Structural tags: free text, tags and sequences around JSON Schemas, regexes and EBNF, in the formats of xgrammar 0.2.8.

Two forms are read: `{"type": "structural_tag", "format": …}`, and the older `{"structures": [{"begin", "schema", "end"}],
"triggers": […]}`, which means `triggered_tags`. Special tokens are formats of their own: `{"type": "token",
"token": SPELLING}` is one of them, and `{"type": "any_tokens"}` is any number of all other tokens, whose text has none of the texts
`excludes`; `{"type": "mark", "text": SPELLING}` is such a token, or that text where the vocabulary has no such token; no text of any other
format has one.

`{"type": "arguments", "json_schema": …}` is the object of that
schema as one text a member (`tags.arguments`): `before_name`, its name, `before_string` or `before_json`, the value, and `after_value`.
Strings have none of the texts `excludes`, those in JSON none of `json_excludes`. `conversion`: what the reader makes of the texts; where it
goes by written types, `before_json` has `{type}` in the place of each. With `after_closing_name`, the name stands once more behind
`after_value`, and that behind it. With `marks`, an array, these texts are formats `mark`. With `cdata`, strings that have `<`, `&` or a
line break stand in a CDATA section; those of bounded length have neither.

`{"type": "suffixed", "marks": [NAME, …], "content": …}` is `content` with the marks `<NAME>` and `</NAME>` as the model's vocabulary has
them, with a suffix or without (`tags.mark_suffix`).

`{"type": "literals", "json_schema": …, "notation": …}` is the members of that object as models write them whose literals are not JSON
(`tags.literals`).

What the library would weaken is refused by name: ids and budgets of tokens (`max_tokens` binds masks but not accepted tokens), free text
with triggers or excludes beside special tokens (it would have these), XML styles, `any_order` (it drops `required`), and triggers inside
one another. `excludes` inside JSON, where it drops length bounds, are kept out of strings here: texts that a reader would take for marks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NoReturn

from grammar_service.errors import GrammarError, GrammarTooLarge, InvalidGrammar, UnsupportedGrammar
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import SET_EFFORT
from grammar_service.schema.fault import AllowList, Fault
from grammar_service.schema.json_schema import JsonSchema, schema_of
from grammar_service.schema.json_text import Json, parse_json
from grammar_service.schema.pointer import join
from grammar_service.tags.arguments import Conversion, members_of
from grammar_service.tags.fields import (
    MAX_MARKS,
    Object,
    any_text_at,
    check_names,
    check_patterns,
    check_triggers,
    choice_at,
    count_at,
    declared_order_at,
    ebnf_at,
    end_at,
    flag_at,
    has_token_rules,
    items_at,
    markup_at,
    no_token_budget_at,
    object_at,
    placed,
    plain_style_at,
    regex_at,
    short_texts_at,
    size_at,
    strings_of,
    text_at,
    texts_at,
    token_free_text_at,
    whitespace_at,
)
from grammar_service.tags.inlining import with_references_inlined
from grammar_service.tags.literals import NOTATIONS, LiteralWriter
from grammar_service.tags.mark_suffix import with_suffix
from grammar_service.tags.member_formats import MemberWriter
from grammar_service.tags.raw_strings import ebnf_of, strings_without, text_format

REMEMBERED = 4
MAX_FORMATS = 1000
"""Formats in one tag: compile time grows with the square of the number of tags, 500 of them with small schemas take two seconds."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The schema of a `json_schema` format, the schema's pointer in the whole tag, and the `max_whitespace_cnt` that it asks for.
    `excludes`: texts that its strings must not have. `definitions`: the pointer of the schema whose definitions stand in it, if it is a
    part of that one, which is one argument of a tool."""

    schema: JsonSchema
    pointer: str
    max_whitespace: int | None = None
    excludes: tuple[str, ...] = ()
    definitions: str | None = None

    def place(self, pointer: str) -> str:
        """The pointer in the tag of what stands at one in the schema."""
        is_defined = self.definitions is not None and pointer.startswith(("/$defs/", "/definitions/"))
        return f"{self.definitions if is_defined else self.pointer}{pointer}"


def tag_faults(text: str, faults_of: AllowList, closed: bool = True, formats: bool = True) -> list[Fault]:
    """What the backend of an allow-list would not enforce exactly of the embedded schemas, at pointers into the tag. Nothing is
    compiled.

    Raises:
        InvalidGrammar, UnsupportedGrammar, GrammarTooLarge: not a structural tag, an unknown or unsupported format or field, more
            than MAX_FORMATS formats, or an embedded schema, regex or grammar that is at fault itself.
    """
    embedded = embedded_schemas(text, closed, formats)
    faults = [(e, replace(fault, pointer=fault.pointer or "")) for e in embedded for fault in e.schema.form_for(faults_of).faults]
    return [fault.at(e.place) for e, fault in faults]


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


def to_library_format(
    text: str,
    to_ebnf: Callable[[Embedded], str],
    closed: bool = True,
    formats: bool = True,
    special_tokens: Mapping[str, int] | None = None,
    added_tokens: Collection[str] | None = None,
) -> Json:
    """The tag in the library's newer form, with each embedded schema as the EBNF that `to_ebnf` makes of it.

    EBNF, since the library reads an embedded schema in its strict mode and with any amount of any whitespace. `special_tokens`: the ids of
    those that the vocabulary has; `added_tokens`: the spellings of all tokens that were added to it; None: they are not known. Raises as
    `tag_faults`.
    """
    return _Reader(to_ebnf, closed, formats, special_tokens, added_tokens).document(parse_json(text, "the structural tag"))


def names_tokens(library_format: Json) -> bool:
    """Whether a tag in the library's form has formats of tokens."""
    if isinstance(library_format, list):
        return any(map(names_tokens, library_format))
    if not isinstance(library_format, dict):
        return False
    rules = library_format.get("grammar")
    is_of_tokens = library_format.get("type") in _OF_TOKENS or (isinstance(rules, str) and has_token_rules(rules))
    return is_of_tokens or any(map(names_tokens, library_format.values()))


class _Reader:
    """One walk over a tag, which it copies; recursion is bounded by the nesting that `parse_json` admits.

    `_ends` are the strings that end the innermost tag: the library keeps them out of free text inside it.
    """

    def __init__(
        self,
        to_ebnf: Callable[[Embedded], str],
        closed: bool,
        formats: bool,
        special_tokens: Mapping[str, int] | None,
        added_tokens: Collection[str] | None,
    ) -> None:
        self._special_tokens = special_tokens
        self._added_tokens = added_tokens
        self._kinds: dict[str, str] = {}
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
        read = self.format(tag["format"], "/format")
        if not _OF_TOKENS.isdisjoint(self._kinds) and (kind := next((kind for kind in _OF_BYTES if kind in self._kinds), None)):
            raise UnsupportedGrammar(f"`{kind}` beside formats of tokens could hold special tokens: use `any_tokens`", self._kinds[kind])
        return {"type": "structural_tag", "format": read}

    def format(self, value: Json, pointer: str) -> Json:
        given = object_at(value, "a format", pointer)
        kind = given.get("type")
        if not isinstance(kind, str):
            raise InvalidGrammar("a format needs a `type`", pointer)
        if kind not in _FORMATS:
            _refuse_kind(kind, join(pointer, "type"))
        self._count(pointer)
        self._kinds.setdefault(kind, pointer)
        required, optional = _FORMATS[kind]
        check_names(given, {*required}, {*optional, "type"}, pointer)
        if kind == "tag":
            return self._tag(given, pointer)
        if kind == "suffixed":
            return self._suffixed(given, pointer)
        readers = {**required, **optional}
        fields = {name: readers[name](self, member, join(pointer, name)) for name, member in given.items() if name != "type"}
        if kind == "json_schema":
            return self._json(fields, join(pointer, "json_schema"))
        if kind == "arguments":
            return self._arguments(fields, join(pointer, "json_schema"))
        if kind == "literals":
            return self._literals(fields, join(pointer, "json_schema"))
        self._check_together(kind, fields, pointer)
        if kind == "mark":
            return self._mark(str(fields["text"]))
        if kind == "any_tokens":
            return _any_tokens(fields, self._special_tokens or {})
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

    def token(self, value: Json, pointer: str) -> Json:
        """The id of a special token."""
        spelling = text_at(value, pointer)
        if self._special_tokens is None:
            return 0
        if spelling not in self._special_tokens:
            raise InvalidGrammar(f"the model has no special token {spelling[:40]!r}", pointer)
        return self._special_tokens[spelling]

    def _mark(self, spelling: str) -> Json:
        known = self._special_tokens
        if known is not None and spelling not in known:
            return text_format(spelling)
        return {"type": "token", "token": known[spelling] if known else 0}

    def regex(self, value: Json, pointer: str) -> Json:
        return regex_at(value, pointer, self._effort)

    def _count(self, pointer: str) -> None:
        self._formats += 1
        if self._formats > MAX_FORMATS:
            raise GrammarTooLarge(f"the structural tag has more than {MAX_FORMATS} formats", pointer)

    def _tag(self, given: Object, pointer: str) -> Json:
        begin = token_free_text_at(given["begin"], join(pointer, "begin"))
        end = end_at(given["end"], join(pointer, "end"))
        outside, self._ends = self._ends, strings_of(end)
        content = self.format(given["content"], join(pointer, "content"))
        self._ends = outside
        return {"type": "tag", "begin": begin, "content": content, "end": end}

    def _suffixed(self, given: Object, pointer: str) -> Json:
        content, at_marks = given["content"], join(pointer, "marks")
        names = strings_of(texts_at(items_at(given["marks"], at_marks), at_marks))
        if self._kinds["suffixed"] != pointer:  # each of them walks over all that is inside
            raise UnsupportedGrammar("a tag may have one format of this type", pointer)
        if sum(map(len, names)) > MAX_MARKS:
            raise GrammarTooLarge(f"more than {MAX_MARKS} characters of marks", at_marks)
        if self._added_tokens is not None:
            content = with_suffix(content, names, self._added_tokens, at_marks)
        return self.format(content, join(pointer, "content"))

    def _json(self, fields: Object, pointer: str) -> Json:
        most = fields.get("max_whitespace_cnt")
        try:
            schema = schema_of(fields["json_schema"], self._closed, self._formats_hold)
        except GrammarError as error:
            raise placed(error, pointer) from None
        excludes = tuple(strings_of(fields.get("excludes")))
        return {"type": "grammar", "grammar": self._to_ebnf(Embedded(schema, pointer, most if isinstance(most, int) else None, excludes))}

    def _arguments(self, fields: Object, pointer: str) -> Json:
        schema, marks = fields["json_schema"], strings_of(fields.get("marks"))
        if marks:
            self._kinds.setdefault("mark", pointer)
        beside_tokens = not _OF_TOKENS.isdisjoint(self._kinds)
        if not beside_tokens:
            self._kinds.setdefault("any_text", pointer)
        writer = MemberWriter(fields, beside_tokens, self._ends, self._mark, partial(self._member_json, fields, pointer))
        try:
            conversion = Conversion(str(fields.get("conversion", Conversion.ALL_TYPES)))
            read = list(members_of(schema if isinstance(schema, dict) else {}, self._closed, self._formats_hold, conversion))
            for _ in read:
                self._count(pointer)
            return {"type": "sequence", "elements": [writer.format(member) for member in read] or [text_format("")]}
        except GrammarError as error:
            raise error if (error.pointer or "").startswith(pointer) else placed(error, pointer) from None

    def _member_json(self, fields: Object, pointer: str, name: str, document: Object) -> Json:
        schema = schema_of(document, self._closed, self._formats_hold)
        excludes = tuple(strings_of(fields["json_excludes"]))
        embedded = Embedded(schema, join(pointer, "properties", name), None, excludes, pointer)
        return {"type": "grammar", "grammar": self._to_ebnf(embedded)}

    def _literals(self, fields: Object, pointer: str) -> Json:
        given, notation = fields["json_schema"], NOTATIONS[str(fields["notation"])]
        schema: Object = given if isinstance(given, dict) else {}
        if notation.quote:
            self._kinds.setdefault("mark" if notation.may_be_text else "token", pointer)

        def mark(spelling: str) -> str:
            is_text = notation.may_be_text and spelling not in (self._special_tokens or {})
            return json.dumps(spelling) if is_text else f"Token({self.token(spelling, '')})"

        def number_rules(numbers: JsonSchema, place: str) -> str:
            # As an argument: of numbers that are beyond doubles, readers of texts make strings.
            return self._to_ebnf(Embedded(numbers, f"{pointer}{place}", definitions=pointer))

        try:
            read = schema_of(given, self._closed, self._formats_hold)
            writer = LiteralWriter(read, notation, mark, number_rules)
            return {"type": "grammar", "grammar": writer.members(with_references_inlined(schema)[0])}
        except GrammarError as error:
            raise placed(error, pointer) from None

    def _older(self, tag: Object) -> Json:
        triggers = texts_at(items_at(tag["triggers"], "/triggers"), "/triggers")
        tags = [self._structure(item, join("/structures", index)) for index, item in enumerate(items_at(tag["structures"], "/structures"))]
        fields: Object = {"triggers": triggers, "tags": tags}
        self._check_dispatch(strings_of(triggers), fields, "/triggers", "/structures")
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
            self._check_dispatch(strings_of(fields["triggers"]), fields, join(pointer, "triggers"), join(pointer, "tags"))
        elif kind == "dispatch":
            patterns = [str(rule[0]) for rule in items_at(fields["rules"], pointer) if isinstance(rule, list)]
            check_patterns(patterns, [*strings_of(fields.get("excludes")), *self._ends], join(pointer, "rules"))
        elif kind == "repeat":
            least, most = count_at(fields["min"], join(pointer, "min")), count_at(fields["max"], join(pointer, "max"))
            if least < 0 or most < -1 or -1 < most < least:
                raise InvalidGrammar("`min` must be at least 0, and at most `max`, where -1 means no bound", join(pointer, "min"))

    def _check_dispatch(self, triggers: list[str], fields: Object, at_triggers: str, at_tags: str) -> None:
        check_patterns(triggers, [*strings_of(fields.get("excludes")), *self._ends], at_triggers)
        tags = items_at(fields["tags"], at_tags)
        check_triggers(triggers, [str(tag["begin"]) for tag in tags if isinstance(tag, dict)], at_triggers, at_tags)


def _any_tokens(fields: Object, special_tokens: Mapping[str, int]) -> Json:
    """With `excludes` a grammar of characters, since the library's free text has special tokens too."""
    if excludes := tuple(strings_of(fields.get("excludes"))):
        return {"type": "grammar", "grammar": ebnf_of(strings_without(excludes))}
    return {"type": "any_tokens", "exclude_tokens": [*sorted(special_tokens.values())]}


def _refuse_kind(kind: str, pointer: str) -> NoReturn:
    if kind in _TOKEN_FORMATS:
        raise UnsupportedGrammar("of the formats of tokens there are `token`, `mark` and `any_tokens`", pointer)
    if kind == "qwen_xml_parameter":
        raise UnsupportedGrammar("arguments in an XML style are not enforced exactly", pointer)
    raise UnsupportedGrammar(f"{kind[:40]!r} is not a format of structural tags", pointer)


_TOKEN_FORMATS = frozenset({"exclude_token", "token_triggered_tags", "token_dispatch"})
_OF_TOKENS = frozenset({"token", "any_tokens", "mark"})
_OF_BYTES = ("any_text", "triggered_tags", "dispatch")
"""The library matches these byte by byte, and so with any token that has one."""
_Read = Callable[[_Reader, Json, str], Json]


def _plain(read: Callable[[Json, str], Json]) -> _Read:
    return lambda _, value, pointer: read(value, pointer)


def _notation_at(value: Json, pointer: str) -> Json:
    if value not in NOTATIONS:
        raise UnsupportedGrammar(f"the notations are {', '.join(NOTATIONS)}", pointer)
    return value


_TEXTS, _FLAG, _COUNT = _plain(texts_at), _plain(flag_at), _plain(count_at)
_JSON_OPTIONS: dict[str, _Read] = {
    "style": _plain(plain_style_at),
    "any_order": _plain(declared_order_at),
    "max_whitespace_cnt": _plain(whitespace_at),
    "excludes": _plain(markup_at),
}
_TAG_OPTIONS: dict[str, _Read] = {"at_least_one": _FLAG, "stop_after_first": _FLAG}
_CONTENT: dict[str, _Read] = {"content": _Reader.format}
_FORMATS: dict[str, tuple[dict[str, _Read], dict[str, _Read]]] = {
    "const_string": ({"value": _plain(any_text_at)}, {}),
    "any_text": ({}, {"excludes": _TEXTS, "max_chars": _plain(size_at), "max_tokens": _plain(no_token_budget_at)}),
    "token": ({"token": _Reader.token}, {}),
    "mark": ({"text": _plain(text_at)}, {}),
    "any_tokens": ({}, {"excludes": _plain(short_texts_at)}),
    "json_schema": ({"json_schema": _Reader.schema}, _JSON_OPTIONS),
    "arguments": (
        {
            "json_schema": _Reader.schema,
            **dict.fromkeys(("before_name", "before_string", "before_json", "after_value"), _plain(text_at)),
            **dict.fromkeys(("excludes", "json_excludes"), _plain(markup_at)),
        },
        {
            "conversion": _plain(lambda value, pointer: choice_at(value, pointer, [*Conversion])),
            "after_closing_name": _plain(text_at),
            "marks": _plain(short_texts_at),
            "cdata": _FLAG,
        },
    ),
    "literals": ({"json_schema": _Reader.schema, "notation": _plain(_notation_at)}, {}),
    "regex": ({"pattern": _Reader.regex}, {}),
    "grammar": ({"grammar": _plain(ebnf_at)}, {}),
    "sequence": ({"elements": _Reader.formats}, {}),
    "or": ({"elements": _Reader.formats}, {}),
    "optional": (_CONTENT, {}),
    "plus": (_CONTENT, {}),
    "star": (_CONTENT, {}),
    "suffixed": ({"marks": _TEXTS, **_CONTENT}, {}),
    "repeat": ({"min": _COUNT, "max": _COUNT, **_CONTENT}, {}),
    "tag": ({"begin": _plain(token_free_text_at), "end": _plain(end_at), **_CONTENT}, {}),
    "triggered_tags": ({"triggers": _TEXTS, "tags": _Reader.tags}, {**_TAG_OPTIONS, "excludes": _TEXTS}),
    "tags_with_separator": ({"tags": _Reader.tags, "separator": _plain(any_text_at)}, _TAG_OPTIONS),
    "dispatch": ({"rules": _Reader.rules}, {"loop": _FLAG, "excludes": _TEXTS}),
}
"""Required and optional fields of each format, and what reads them."""
