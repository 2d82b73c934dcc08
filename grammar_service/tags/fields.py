"""The plain fields of structural tags: each reader returns the value that it has checked, or refuses it at its pointer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grammar_service.errors import GrammarError, GrammarTooLarge, InvalidGrammar, UnsupportedGrammar
from grammar_service.limits import MAX_COUNT, group_nesting
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.plain import plain_full_match
from grammar_service.schema.json_text import HARD_NESTING, Json
from grammar_service.schema.pointer import join
from grammar_service.spec import MAX_WHITESPACE, GrammarKind

MAX_TRIGGERS = 100
"""Each is compared with each: patterns inside one another are a fault."""

MAX_MARKS = 200
"""Characters of all marks that strings must not have: each is a state of an automaton, and 25 ms of compiling."""

Object = dict[str, Json]


def check_names(given: Object, required: set[str], optional: set[str], pointer: str) -> None:
    """All required fields are there, and no unknown ones."""
    if missing := sorted(required - given.keys()):
        raise InvalidGrammar(f"`{missing[0]}` is missing", pointer)
    if unknown := sorted(given.keys() - required - optional):
        raise UnsupportedGrammar(f"`{unknown[0][:80]}` is not a field here", join(pointer, unknown[0]))


def placed(error: GrammarError, pointer: str) -> GrammarError:
    """The same error, of something that stands at `pointer`."""
    return type(error)(error.message, pointer + (error.pointer or ""))


def object_at(value: Json, what: str, pointer: str) -> Object:
    if not isinstance(value, dict):
        raise InvalidGrammar(f"{what} must be an object", pointer)
    return value


def items_at(value: Json, pointer: str) -> list[Json]:
    if not isinstance(value, list) or not value:
        raise InvalidGrammar("this must be a non-empty array", pointer)
    return value


def any_text_at(value: Json, pointer: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise InvalidGrammar("this must be a string without NUL", pointer)
    return value


def text_at(value: Json, pointer: str) -> str:
    if not any_text_at(value, pointer):
        raise InvalidGrammar("this string must not be empty", pointer)
    return str(value)


def choice_at(value: Json, pointer: str, choices: Sequence[str]) -> Json:
    if value not in choices:
        raise InvalidGrammar(f"this must be one of: {', '.join(choices)}", pointer)
    return value


_NOT_RULES = re.compile(r'"(?:[^"\\\n]|\\.)*"|\[(?:[^\]\\\n]|\\.)*\]|#[^\n]*')
"""Texts, classes and comments of EBNF."""
_TOKEN_RULE = re.compile(r"(?:Token|TokenTagDispatch)\s*\(")


def texts_at(value: Json, pointer: str) -> Json:
    """An array of non-empty strings; an empty array too."""
    if not isinstance(value, list):
        raise InvalidGrammar("this must be an array of strings", pointer)
    return [text_at(item, join(pointer, index)) for index, item in enumerate(value)]


def short_texts_at(value: Json, pointer: str) -> Json:
    """An array of non-empty strings of MAX_MARKS characters in all."""
    if sum(len(str(text)) for text in _listed(texts_at(value, pointer))) > MAX_MARKS:
        raise GrammarTooLarge(f"more than {MAX_MARKS} characters of marks", pointer)
    return value


def markup_at(value: Json, pointer: str) -> Json:
    """An array of short texts, each of which begins with `<`, `[`, a character beyond ASCII or a control character, as a mark does and no
    escape of JSON."""
    listed = [mark for mark in _listed(value) if mark != "\0"] if isinstance(value, list) else value
    for index, mark in enumerate(str(mark) for mark in _listed(short_texts_at(listed, pointer))):
        if mark[0] not in "<[" and " " <= mark[0] <= "\x7f":
            raise UnsupportedGrammar("this must begin with '<', '[', a character beyond ASCII or a control character", join(pointer, index))
    return value


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def token_free_text_at(value: Json, pointer: str) -> Json:
    """The `begin` of a tag: a string, possibly empty, where the library would also take a token."""
    if isinstance(value, dict):
        raise UnsupportedGrammar("a token is a format of its own here: put it ahead of the tag, or behind", pointer)
    return any_text_at(value, pointer)


def end_at(value: Json, pointer: str) -> Json:
    """The `end` of a tag: a string, possibly empty, or a non-empty array of such."""
    if isinstance(value, dict):
        return token_free_text_at(value, pointer)
    if isinstance(value, list):
        return [any_text_at(item, join(pointer, index)) for index, item in enumerate(items_at(value, pointer))]
    return any_text_at(value, pointer)


def flag_at(value: Json, pointer: str) -> Json:
    if not isinstance(value, bool):
        raise InvalidGrammar("this must be true or false", pointer)
    return value


def count_at(value: Json, pointer: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidGrammar("this must be an integer", pointer)
    if value > MAX_COUNT:
        raise UnsupportedGrammar(f"counts above {MAX_COUNT} are not supported", pointer)
    return value


def size_at(value: Json, pointer: str) -> Json:
    """A count of 0 or more, or null for none."""
    if value is not None and count_at(value, pointer) < 0:
        raise InvalidGrammar("this must not be negative", pointer)
    return value


def whitespace_at(value: Json, pointer: str) -> Json:
    """A bound on whitespace that is no wider than our own, or null."""
    if value is not None and not 1 <= count_at(value, pointer) <= MAX_WHITESPACE:
        raise UnsupportedGrammar(f"whitespace must be bounded by 1 to {MAX_WHITESPACE} characters", pointer)
    return value


def no_token_budget_at(value: Json, pointer: str) -> Json:
    if value is not None:
        raise UnsupportedGrammar("a number of tokens is not enforced: use `max_chars`", pointer)
    return value


def plain_style_at(value: Json, pointer: str) -> Json:
    if value != "json":
        raise UnsupportedGrammar('only the style "json" is enforced exactly', pointer)
    return value


def declared_order_at(value: Json, pointer: str) -> Json:
    if flag_at(value, pointer):
        raise UnsupportedGrammar("properties in any order would leave `required` unenforced", pointer)
    return value


def regex_at(value: Json, pointer: str, effort: Effort) -> Json:
    """The regex, which means `re.fullmatch` with `re.ASCII`, in the form that no backend misreads; `effort` is that of the tag."""
    pattern = text_at(value, pointer)
    _check_groups(GrammarKind.REGEX, pattern, pointer)
    try:
        return plain_full_match(pattern, effort)
    except GrammarError as error:
        raise placed(error, pointer) from None


def ebnf_at(value: Json, pointer: str) -> Json:
    grammar = text_at(value, pointer)
    _check_groups(GrammarKind.EBNF, grammar, pointer)
    if has_token_rules(grammar):
        raise UnsupportedGrammar("ids of tokens have no meaning here: use the format `token`", pointer)
    return grammar


def has_token_rules(ebnf: str) -> bool:
    """Whether rules have tokens by their ids, as only xgrammar's have."""
    return _TOKEN_RULE.search(_NOT_RULES.sub(" ", ebnf)) is not None


def _check_groups(kind: GrammarKind, text: str, pointer: str) -> None:
    if group_nesting(kind, text) > HARD_NESTING:
        raise GrammarTooLarge(f"this is nested deeper than {HARD_NESTING} levels", pointer)


def check_patterns(patterns: list[str], others: list[str], pointer: str) -> None:
    """No pattern stands inside another one, or inside a string that ends the free text: the library would let it pass unseen.

    `pointer` is of the array of patterns.
    """
    if len(patterns) > MAX_TRIGGERS:
        raise GrammarTooLarge(f"more than {MAX_TRIGGERS} triggers", pointer)
    for index, pattern in enumerate(patterns):
        if any(pattern in other for other in [*patterns[:index], *patterns[index + 1 :], *others]):
            raise UnsupportedGrammar(
                f"{pattern[:40]!r} is part of another trigger, exclusion or end, where it is not enforced", join(pointer, index)
            )


def check_triggers(triggers: list[str], begins: list[str], at_triggers: str, at_tags: str) -> None:
    """Each tag begins with exactly one trigger, and each trigger begins some tag; otherwise the library gives up on the grammar."""
    used: set[str] = set()
    for index, begin in enumerate(begins):
        matching = {trigger for trigger in triggers if begin.startswith(trigger)}
        if len(matching) != 1:
            raise InvalidGrammar("`begin` must start with exactly one of the triggers", join(at_tags, index, "begin"))
        used |= matching
    for index, trigger in enumerate(triggers):
        if trigger not in used:
            raise InvalidGrammar("no tag begins with this trigger", join(at_triggers, index))


def strings_of(value: Json) -> list[str]:
    """The strings of a field that is one string or an array of them; without the empty ones, which match nothing."""
    return [str(item) for item in (value if isinstance(value, list) else [value]) if item]
