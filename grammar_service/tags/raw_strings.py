"""Strings that stand in a text as they are, unquoted: sets of them as rules of a grammar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import chain

from grammar_service.regexes.automata.subsets import Moves
from grammar_service.regexes.classes import LAST, CodePoints
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.rendering import literal
from grammar_service.regexes.string_set import SET_EFFORT, StringSet
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.json_text import Json

_SPACE = r"\s\x1c-\x1f\x85"
_DIGITS = r"\p{Nd}[\p{Nd}_]*"
LIKE = {
    "number": rf"^[{_SPACE}]*[+\-]?(?:{_DIGITS}\.?[\p{{Nd}}_]*|\.{_DIGITS})(?:[eE][+\-]?{_DIGITS})?[{_SPACE}]*$",
    "boolean": rf"^[{_SPACE}]*(?:[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|[01])[{_SPACE}]*$",
    "null": "^[nN][uU][lL][lL]$",
    "json": r'^[ \t\n\r]*(?:[{\["\-0-9][\s\S]*|true[ \t\n\r]*|false[ \t\n\r]*|null[ \t\n\r]*)$',
}
_WORDS = ("true", "false", "null", "NaN", "Infinity")
"""All that Python's reader of JSON takes for a value but what one character begins."""
_JSON_SPACE, _JSON_FIRST = r" \t\n\r", r"{\[\"\-0-9"
_JSON_NUMBER = r"-?(?:Infinity|[0-9]+(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?)"
LIKE["any_json"] = rf"^[{_JSON_SPACE}]*(?:[{{\[\"][\s\S]*|(?:{_JSON_NUMBER}|{'|'.join(_WORDS)})[{_JSON_SPACE}]*)$"
"""What Python reads as one. Not all that begins as JSON does is JSON."""
_BEYOND, _LETTERS = "\x80-\U0010ffff", "[\xc0-\u052f\u3041-\u9fff\uac00-\ud7a3]"
"""All characters beyond ASCII, and those of them that are no digits and no spaces for certain: Latin to Cyrillic, CJK, Hangul."""


def raw_string(strings: Strings | StringSet, excludes: tuple[str, ...], mistaken_for: frozenset[str] = frozenset()) -> Json | None:
    """A format of the library's: one of the strings, without any of the texts `excludes`, and without what a reader could have
    `mistaken_for` a "number", a "boolean" or "any_json"; None: nothing is left of them. Raises UnsupportedGrammar: these strings take too
    many states."""
    if mistaken_for == {"any_json"} and isinstance(strings, Strings) and strings == Strings(strings.least, strings.most):
        return _no_json(strings.least, strings.most, excludes)
    if strings == Strings() and mistaken_for:
        return _unmistakable(excludes, mistaken_for)
    if isinstance(strings, Strings) and strings == Strings(strings.least, strings.most) and not mistaken_for:
        return _counted(strings.least, strings.most, excludes)
    language = strings.language() if isinstance(strings, Strings) else strings
    others = (StringSet.of_pattern(LIKE[kind]).complement() for kind in sorted(mistaken_for))
    kept = StringSet.all_of([language, *others, strings_without(excludes)])
    return None if kept.is_empty else {"type": "grammar", "grammar": ebnf_of(kept)}


def _counted(least: int, most: int | None, excludes: tuple[str, ...]) -> Json:
    """The first characters begin nothing that is left out, since only the library's free text knows of that."""
    rest = _any(excludes, None if most is None else most - least)
    return _sequence(_regex(f"[^{first_characters(excludes)}]{{{least}}}"), rest) if least else rest


def _no_json(least: int, most: int | None, excludes: tuple[str, ...]) -> Json:
    """Judged by the first characters. This leaves out more strings than it must, as all that begin with a space."""
    first = first_characters(excludes)
    short = ["", *_begins(excludes), *(word[:end] for word in _WORDS for end in range(1, len(word)))]
    whole = "|".join(literal(text) for text in short if least <= len(text) and (most is None or len(text) <= most))
    ways = [_regex(f"(?:{whole})")] if whole or least == 0 else []
    heads = _heads_of_no_json(excludes, first)
    if least == 0 and most is None:
        behind_number = rf"-?[0-9]+[^0-9.eE{_JSON_SPACE}{first}]"
        behind_space = rf"(?:-?[0-9]+|{'|'.join(_WORDS)})[{_JSON_SPACE}]+[^{_JSON_SPACE}{first}]"
        begun = "|".join([*chain(*heads.values()), behind_number, behind_space])
        return {"type": "or", "elements": [*ways, _sequence(_regex(begun), _any(excludes, None))]}
    for length, same in heads.items():
        if most is None or length <= most:
            ways.append(_sequence(_regex("|".join(same)), _counted(max(least - length, 0), most and most - length, excludes)))
    return {"type": "or", "elements": ways} if ways else text_format("")


def _begins(excludes: tuple[str, ...]) -> list[str]:
    """First characters of excluded texts, but for those that are excluded themselves."""
    return [begin for begin in dict.fromkeys(excluded[0] for excluded in excludes) if begin not in excludes]


def _heads_of_no_json(excludes: tuple[str, ...], first: str) -> dict[int, list[str]]:
    """By their lengths, regexes of the first characters of what is no JSON, whatever follows. They end in no excluded text."""
    heads: dict[int, list[str]] = {}
    letters = "".join(word[0] for word in _WORDS)
    heads[1] = [f"[^{_JSON_SPACE}{_JSON_FIRST}{letters}{first}]"]
    heads[2] = [f"-[^0-9I{first}]"]
    for begin in _begins(excludes):
        behind = first_characters(tuple(excluded[1:] for excluded in excludes if excluded[0] == begin))
        heads[2].append(f"{literal(begin)}[^{behind}{first}]")
    for word in _WORDS:
        for end in range(1, len(word)):
            heads.setdefault(end + 1, []).append(f"{word[:end]}[^{word[end]}{first}]")
        heads.setdefault(len(word) + 1, []).append(f"{word}[^{_JSON_SPACE}{first}]")
    return heads


def _unmistakable(excludes: tuple[str, ...], mistaken_for: frozenset[str]) -> Json:
    """Judged by the first two characters. This leaves out more strings than it must."""
    first, taken = first_characters(excludes), "0-9" + _SPACE
    if "number" in mistaken_for:
        taken += r"+\-."
    begun, whole = [], ""
    if "boolean" in mistaken_for:
        taken += "tTfF"
        begun, whole = [f"[tT][^rR{first}]", f"[fF][^aA{first}]"], "[tTfF]?"
    begun += [f"[^{taken}{first}{_BEYOND}]", _LETTERS]
    return {
        "type": "or",
        "elements": [_regex(whole) if whole else text_format(""), _sequence(_regex("|".join(begun)), _any(excludes, None))],
    }


def of_characters(value: Json) -> Json:
    """A format as one of a grammar's characters, where the library's free text would have special tokens too. Those of bounded length do
    without the first characters of what is left out."""
    if not isinstance(value, dict):
        return value
    if value.get("type") == "any_text":
        excludes, most = tuple(map(str, _listed(value["excludes"]))), value["max_chars"]
        plain = _regex(f"[^{first_characters(excludes)}]{{0,{most}}}")
        return {"type": "grammar", "grammar": ebnf_of(strings_without(excludes))} if most is None else plain
    return {**value, "elements": [*map(of_characters, _listed(value["elements"]))]} if "elements" in value else value


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def strings_without(texts: tuple[str, ...]) -> StringSet:
    """The strings in which none of these texts stands."""
    # Whoever combines it spends of its own effort.
    return replace(_strings_without(texts), effort=Effort(SET_EFFORT))


@lru_cache(maxsize=64)
def _strings_without(texts: tuple[str, ...]) -> StringSet:
    characters = "".join(literal(text) for text in texts if len(text) == 1)
    kept = [StringSet.of_pattern(f"^[^{characters}]*$")] if characters else []
    return StringSet.all_of([*kept, *(StringSet.of_pattern(literal(text)).complement() for text in texts if len(text) > 1)])


def first_characters(texts: tuple[str, ...]) -> str:
    """As regexes have them in a class."""
    return "".join(dict.fromkeys(literal(text[0]) for text in texts))


def _any(excludes: tuple[str, ...], most: int | None) -> Json:
    return {"type": "any_text", "excludes": [*excludes], "max_chars": most}


def _regex(pattern: str) -> Json:
    return {"type": "regex", "pattern": pattern}


def text_format(value: str) -> Json:
    return {"type": "const_string", "value": value}


def _sequence(*elements: Json) -> Json:
    return {"type": "sequence", "elements": [*elements]}


def ebnf_of(strings: StringSet) -> str:
    """One rule for each state of the set's automaton, which holds what may follow (a right-linear grammar)."""
    return "".join(f"{_name(state)} ::= {' | '.join(_choices(strings, state))}\n" for state in sorted(strings.live))


def _choices(strings: StringSet, state: int) -> Iterator[str]:
    if state in strings.accepting:
        yield '""'
    for target, points in classes(strings.moves[state]).items():
        if target in strings.live and points.ranges:
            yield f"{character_class(points)} {_name(target)}"


def _name(state: int) -> str:
    return f"text{state}" if state else "root"


def classes(moves: Moves) -> dict[int, CodePoints]:
    """The characters, surrogates left out, that lead to each state."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for index, (low, target) in enumerate(moves):
        high = moves[index + 1][0] - 1 if index + 1 < len(moves) else LAST
        ranges.setdefault(target, []).append((low, high))
    return {target: CodePoints.of(found).minus_surrogates() for target, found in ranges.items()}


def character_class(points: CodePoints) -> str:
    """In EBNF."""
    return f"[{''.join(character(low) + (f'-{character(high)}' if high > low else '') for low, high in points.ranges)}]"


def character(point: int) -> str:
    """In a class of EBNF."""
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
