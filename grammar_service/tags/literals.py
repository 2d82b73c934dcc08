"""Arguments of a tool in literals that are not JSON, as rules of a grammar: `name:VALUE` with commas between them, nested values included.

The reader at the other end (vLLM 0.32: `parser/gemma4.py`, `parser/engine/parser_engine.py`) takes every scalar for a text, and converts
that to the first of null, an integer, a number, a boolean, JSON and a string that the `type` of its schema allows. It finds this schema by
`properties` and `items` alone (`with_references_inlined`). So values are left out that would not be read as what they are, and a value
whose type it cannot know is a string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from grammar_service.errors import GrammarError, UnsupportedGrammar
from grammar_service.regexes.classes import CodePoints, points
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import SET_EFFORT, StringSet
from grammar_service.schema.algebra.arrays import Arrays
from grammar_service.schema.algebra.cases import FULL, Alternatives, Cases, Shape, Symbols
from grammar_service.schema.algebra.expression import NOTHING, At, Expression
from grammar_service.schema.algebra.numbers import Numbers
from grammar_service.schema.algebra.objects import Objects
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.json_schema import JsonSchema, schema_of
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import dict_at, walk
from grammar_service.schema.reading.document import Document
from grammar_service.schema.reading.reader import Reader
from grammar_service.schema.references import References
from grammar_service.tags.arguments import inferred_types
from grammar_service.tags.raw_strings import LIKE, character_class, classes

_NAME = re.compile(r"[\w.\-$@/]+(?: [\w.\-$@/]+)*")
_NAME_RULES = (
    r'name ::= name_part (" " name_part)*' + "\n"
    r"name_part ::= [a-zA-Z0-9_.\-$@/\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u3041-\u3096\u4e00-\u9fff\uac00-\ud7a3]+" + "\n"
)
_RULE = re.compile(r"^(\w+) ::= (.*)$", re.MULTILINE)
_RULE_NAME = re.compile(r"\b(?:root|basic)\w*")
LONGEST_STRING = 32
"""Characters. Each takes 50 ms to compile on 131,072 tokens."""
_JSON_SYMBOLS: Mapping[bool | None, str] = {None: "null", True: "true", False: "false"}
_PYTHON_SYMBOLS: Mapping[bool | None, str] = {None: "None", True: "True", False: "False"}
_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\\": "\\", '"': '"', "'": "'"}
_UNWRITABLE = CodePoints.of([(0, 0x1F), (0x7F, 0x9F), (0x2028, 0x2029)])
"""Control characters and what some take for the end of a line: not as they are in a literal of Python's."""


@dataclass(frozen=True)
class Notation:
    """`marks`: a pattern of what strings must not have, each of which begins with the character `begin`, which those of bounded length do
    without. Strings stand unescaped between two tokens `quote`, or such texts where it `may_be_text`; with none, they are literals of
    Python's. `comma` is between members and items, `assign` behind a name. `is_converted`: the reader makes values of texts, by their
    schema; `is_sorted`: members are, by name."""

    marks: str = ""
    begin: str = ""
    quote: str = ""
    may_be_text: bool = False
    comma: str = ", "
    assign: str = "="
    symbols: Mapping[bool | None, str] = field(default_factory=lambda: _PYTHON_SYMBOLS)
    is_converted: bool = False
    is_sorted: bool = False

    @cached_property
    def plain(self) -> StringSet:
        """The strings without marks."""
        return StringSet.of_pattern(self.marks).complement() if self.marks else StringSet.everything()

    @property
    def is_python(self) -> bool:
        return not self.quote


NOTATIONS = {
    "gemma4": Notation(
        r'<\|["a-z]|<[a-z_]+\|>|<(?:bos|eos|pad|unk|mask)>',
        "<",
        '<|"|>',
        comma=",",
        assign=":",
        symbols=_JSON_SYMBOLS,
        is_converted=True,
        is_sorted=True,
    ),
    "functiongemma": Notation(
        r"<escape>|<(?:start|end)_[a-z]+|<(?:bos|eos|pad|unk|mask)>",
        "<",
        "<escape>",
        may_be_text=True,
        comma=",",
        assign=":",
        symbols=_JSON_SYMBOLS,
        is_sorted=True,
    ),
    "python": Notation(),
    "python_with_json_symbols": Notation(symbols=_JSON_SYMBOLS),
}
NumberRules = Callable[[JsonSchema, str], str]


class LiteralWriter:
    """Writes the members of the objects of one schema. `seen` are schemas as the reader at the other end has them, None: it has none.

    `mark` is what stands in rules for a token or its text, `number_rules` the rules of a schema of numbers which stands at a pointer, in
    JSON.
    Raises GrammarError with a pointer into the schema.
    """

    def __init__(self, schema: JsonSchema, notation: Notation, mark: Callable[[str], str], number_rules: NumberRules) -> None:
        self._schema = schema
        self._reader = Reader(Document(References(dict(walk(schema.normal))).schemas))
        self._notation = notation
        self._quotes = ('"', "'") if notation.is_python else (mark(notation.quote),)
        self._comma = f'"{notation.comma}"'
        self._number_rules = number_rules
        self._names: dict[object, str] = {}
        self._rules: list[str] = []
        self._place = ""

    def members(self, seen: Json) -> str:
        """EBNF."""
        try:
            objects = [shape for shape in self._possible(At("")).of("object").shapes if isinstance(shape, Objects)]
            if not objects:
                raise UnsupportedGrammar("arguments are an object", "/type")
            if self._notation.is_converted and any(not shape.named and shape.regions[0][1] != NOTHING for shape in objects):
                raise UnsupportedGrammar("arguments of any name are not told apart in this model's tool calls: list `properties`", "")
            root = " | ".join(self._members(shape, seen, is_outermost=True) for shape in objects)
        except GrammarError as error:
            pointer = self._place if error.pointer is None else error.pointer
            raise type(error)(error.message, self._schema.places.original(pointer)) from None
        return f"root ::= {root}\n{_NAME_RULES}" + "".join(self._rules)

    def _possible(self, expression: Expression) -> Cases:
        return self._reader.without_empty(self._reader.cases(expression))

    def _rule(self, key: object, body: Callable[[], str]) -> str:
        """The name of the rule for what has this key; it may refer to itself."""
        if key not in self._names:
            name = self._names[key] = f"rule{len(self._names)}"
            self._rules.append(f"{name} ::= {body()}\n")
        return self._names[key]

    def _value(self, expression: Expression, seen: Json) -> str:
        outer, self._place = self._place, expression.pointer if isinstance(expression, At) else self._place
        cases = self._possible(expression)
        by_type = tuple(cases.of(kind) for kind in FULL)
        name = self._rule((by_type, id(seen) if seen is not None else None), lambda: " | ".join(self._ways(cases, seen)))
        self._place = outer
        return name

    def _ways(self, cases: Cases, seen: Json) -> Iterator[str]:
        # Whatever is made of a value of which nothing is asked, it is one.
        told = None if cases == Cases(FULL) or not self._notation.is_converted else inferred_types(seen)
        if cases.is_empty:
            raise UnsupportedGrammar("no value is left", self._place)
        for kind in FULL:
            alternatives = cases.of(kind)
            if not alternatives.is_empty and told is not None:
                self._check_told(kind, alternatives, told)
            for shape in alternatives.shapes:
                yield self._shape(shape, seen, frozenset() if told is None else _mistaken_for(told, cases))

    def _check_told(self, kind: str, alternatives: Alternatives, told: frozenset[str]) -> None:
        if kind in ("string", "array", "object") or kind in told:
            return
        if kind != "number" or "integer" not in told or not all(map(_is_whole, alternatives.shapes)):
            raise UnsupportedGrammar(f"this model's parser takes {kind} for text here", self._place)

    def _shape(self, shape: Shape, seen: Json, mistaken_for: frozenset[str]) -> str:
        match shape:
            case Symbols(allowed):
                return " | ".join(f'"{self._notation.symbols[symbol]}"' for symbol in allowed)
            case Numbers():
                return self._rule(shape, lambda: self._numbers(shape))
            case Strings():
                return self._rule((shape, mistaken_for), lambda: self._quoted(shape, mistaken_for))
            case Arrays():
                return f'"[" ({self._items(shape, seen)}) "]"'
            case Objects():
                return f'"{{" ({self._members(shape, seen)}) "}}"'

    def _numbers(self, shape: Numbers) -> str:
        """The rules that the library writes, under names of their own."""
        if (only := shape.only()) is not None:
            # Of 5.0, a reader of whole numbers makes a string.
            return f'"{json.dumps(only)}"'
        schemas = shape.to_schemas()
        schema = schema_of(schemas[0] if len(schemas) == 1 else {"anyOf": schemas})
        rules = dict(_RULE.findall(self._number_rules(schema, self._schema.places.original(self._place))))
        prefix, waiting, written = f"number{len(self._rules)}_", ["root"], set[str]()
        while waiting:
            if (name := waiting.pop()) in rules and name not in written:
                written.add(name)
                waiting += _RULE_NAME.findall(rules[name])
                self._rules.append(f"{prefix}{name} ::= {_RULE_NAME.sub(lambda found: prefix + found[0], rules[name])}\n")
        return f"{prefix}root"

    def _quoted(self, shape: Strings, mistaken_for: frozenset[str] = frozenset()) -> str:
        if not self._notation.is_python:
            return f"{self._quotes[0]} {self._string(shape, mistaken_for, '')} {self._quotes[0]}"
        return " | ".join(f"{_literal(quote)} {self._string(shape, mistaken_for, quote)} {_literal(quote)}" for quote in self._quotes)

    def _letters(self, letters: CodePoints, quote: str) -> list[str]:
        """Each way to write one of them between these quotes."""
        plain, ways = _without(letters), list[str]()
        if self._notation.is_python:
            ways = [_literal(f"\\{escape}") for char, escape in _ESCAPES.items() if ord(char) in letters]
            plain = _meet(plain, CodePoints.of([*_UNWRITABLE.ranges, *points(f"\\{quote}").ranges]).complement())
        return [character_class(plain), *ways] if plain.ranges else ways

    def _string(self, shape: Strings, mistaken_for: frozenset[str], quote: str) -> str:
        for keyword, bound in (("minLength", shape.least), ("maxLength", shape.most or 0)):
            if bound > LONGEST_STRING:
                raise UnsupportedGrammar(f"`{keyword}` above {LONGEST_STRING} takes too long to compile", self._place)
        if shape == Strings(shape.least, shape.most) != Strings() and not mistaken_for:
            one = " | ".join(self._letters(points(self._notation.begin).complement(), quote))
            return f"({one}){_times(shape.least, shape.most)}"
        others = (StringSet.of_pattern(LIKE[kind]).complement() for kind in sorted(mistaken_for))
        strings = StringSet.all_of([shape.language(), *others, replace(self._notation.plain, effort=Effort(SET_EFFORT))])
        if strings.is_empty:
            raise UnsupportedGrammar("this model's parser takes each of these strings for something else", self._place)
        prefix = f"text{len(self._rules)}_"
        for state in sorted(strings.live):
            ways = ['""'] if state in strings.accepting else []
            moves = [(letters, target) for target, letters in classes(strings.moves[state]).items() if target in strings.live]
            ways += [f"{way} {prefix}{target}" for letters, target in moves for way in self._letters(letters, quote)]
            self._rules.append(f"{prefix}{state} ::= {' | '.join(ways)}\n")
        return f"{prefix}0"

    def _items(self, shape: Arrays, seen: Json) -> str:
        if shape.contained or shape.unique:
            keyword = "contains" if shape.contained else "uniqueItems"
            raise UnsupportedGrammar(f"`{keyword}` is not enforced in this model's tool calls", self._place)
        inner = seen.get("items") if isinstance(seen, dict) else None
        behind = "" if shape.rest == NOTHING else self._further_items(shape, inner)
        for index, item in reversed([*enumerate(shape.prefix)]):
            written = f"{self._comma if index else ''} {self._value(item, inner)} {behind}"
            behind = written if index < shape.least else f"({written})?"
        return behind or '""'

    def _further_items(self, shape: Arrays, inner: Json) -> str:
        """Those behind the prefix."""
        item, first = self._value(shape.rest, inner), len(shape.prefix)
        least, most = max(shape.least - first, 0), None if shape.most is None else shape.most - first
        if first:
            return f"({self._comma} {item}){_times(least, most)}"
        more = f"{item} ({self._comma} {item}){_times(max(least - 1, 0), None if most is None else most - 1)}"
        return more if least else f"({more})?"

    def _members(self, shape: Objects, seen: Json, is_outermost: bool = False) -> str:
        """In the order in which the model's chat template has them. Names that are not listed are left out where others are."""
        listed = dict_at(seen, "properties") if isinstance(seen, dict) else {}
        if not shape.named:
            return self._free_members(shape, is_outermost)
        if shape.least or (shape.most is not None and shape.most < len(shape.named)):
            keyword = "minProperties" if shape.least else "maxProperties"
            raise UnsupportedGrammar(f"`{keyword}` is not enforced in this model's tool calls", self._place)
        possible = [(name, asked) for name, asked in shape.named if name in shape.required or not self._reader.is_empty(asked)]
        ordered = sorted(possible, key=lambda member: member[0].lower()) if self._notation.is_sorted else possible
        members = [
            (f"{self._name(name, is_outermost)} {self._value(asked, listed.get(name))}", name in shape.required) for name, asked in ordered
        ]
        return self._listed_members(members)

    def _listed_members(self, members: Sequence[tuple[str, bool]]) -> str:
        """Each way to begin, and a rule for what follows each member."""
        ways, behind = list[str](), '""'
        for index, (member, is_required) in reversed([*enumerate(members)]):
            ways = [f"{member} {behind}", *([] if is_required else ways)]
            following = f"{self._comma} {member} {behind}" if is_required else f"({self._comma} {member})? {behind}"
            behind = self._rule(following, partial(str, following)) if index else behind
        is_optional = not any(is_required for _, is_required in members)
        return " | ".join([*ways, *(['""'] if is_optional else [])])

    def _name(self, name: str, is_outermost: bool) -> str:
        """With what is behind it."""
        if self._notation.is_python and not is_outermost:
            return _literal(f"{json.dumps(name, ensure_ascii=False)}: ")
        if _NAME.fullmatch(name) is None:
            raise UnsupportedGrammar(f"the name {name[:40]!r} cannot be written in this model's tool calls", self._place)
        return _literal(f"{name}{self._notation.assign}")

    def _free_members(self, shape: Objects, is_outermost: bool) -> str:
        """Of any name, or none; a name that comes twice has the later value."""
        if shape.least or len(shape.regions) > 1:
            raise UnsupportedGrammar("properties of any name are not counted or told apart in this model's tool calls", self._place)
        asked = shape.regions[0][1]
        if asked == NOTHING or shape.most == 0:
            return '""'
        is_quoted = self._notation.is_python and not is_outermost
        name = self._rule("any name", lambda: self._quoted(Strings())) if is_quoted else "name"
        member = f"{name} {_literal(': ' if is_quoted else self._notation.assign)} {self._value(asked, None)}"
        return f"({member} ({self._comma} {member}){_times(0, None if shape.most is None else shape.most - 1)})?"


def _literal(text: str) -> str:
    """In EBNF."""
    return json.dumps(text, ensure_ascii=False)


def _meet(left: CodePoints, right: CodePoints) -> CodePoints:
    return CodePoints.of([*left.complement().ranges, *right.complement().ranges]).complement()


def _mistaken_for(told: frozenset[str], cases: Cases) -> frozenset[str]:
    """What a string would be taken for. A null is no mistake where it is allowed as well."""
    kinds = {"integer": "number", "number": "number", "boolean": "boolean", "object": "json", "array": "json"}
    found = {kinds[kind] for kind in told & kinds.keys()}
    return frozenset(found | ({"null"} if "null" in told and cases.of("null").is_empty else set()))


def _is_whole(shape: Shape) -> bool:
    return isinstance(shape, Numbers) and (shape.whole or isinstance(shape.only(), int))


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def _without(letters: CodePoints) -> CodePoints:
    return letters.minus_surrogates().without_nul()
