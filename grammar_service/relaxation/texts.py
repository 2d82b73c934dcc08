"""Keywords that mean in a check of finished answers what they mean in a grammar: ECMA-262's patterns, the formats' RFCs, decimal numbers.

What is no regular language is left to Python's `re`, as `jsonschema` does: that is close to ECMA-262 in all but a few classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from jsonschema import FormatChecker, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from grammar_service.errors import GrammarError
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import Recognizer
from grammar_service.schema.algebra.numbers import exact
from grammar_service.schema.formats.known import FORMATS
from grammar_service.schema.json_text import equality_text

REMEMBERED = 256
EFFORT = 5_000_000
"""Steps for one pattern and all its texts: as long as a check may take."""
_END = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\$", re.DOTALL)


def matches(pattern: str, text: str) -> bool:
    """Whether a JSON Schema `pattern` is found in a text. Raises re.error, OverflowError, RecursionError: nobody knows it; GrammarError: it
    takes more than EFFORT."""
    return _matcher(pattern)(text)


@lru_cache(maxsize=REMEMBERED)
def _matcher(pattern: str) -> Callable[[str], bool]:
    try:
        return Recognizer(pattern, Effort(EFFORT)).matches
    except GrammarError:
        # In Python `$` matches before a line feed at the end, too.
        compiled = re.compile(_END.sub(lambda found: r"\Z" if found[0] == "$" else found[0], pattern))
        return lambda text: compiled.search(text) is not None


def check_pattern(pattern: str) -> None:
    """Raises re.error, OverflowError, RecursionError: nobody could judge by it."""
    _matcher(pattern)


@lru_cache(maxsize=16)
def judging(kind: type[Validator]) -> type[Validator]:
    """A draft's validator with these keywords as they are here."""
    ours = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "multipleOf": _multiple_of,
        "uniqueItems": _unique_items,
    }
    extended: type[Validator] = extend(kind, ours)  # type: ignore[no-untyped-call]
    return extended


def _pattern(validator: Any, pattern: str, instance: Any, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any) -> Iterator[ValidationError]:
    for name, value in instance.items() if isinstance(instance, dict) else ():
        for pattern, subschema in patterns.items():
            if matches(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, others: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    listed, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, value in instance.items() if isinstance(instance, dict) else ():
        if name in listed or any(matches(pattern, name) for pattern in patterns):
            continue
        if others is False:
            yield ValidationError(f"{name!r} is an additional property, and none is allowed")
        else:
            yield from validator.descend(value, others, path=name)


def _multiple_of(validator: Any, factor: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """The library divides floats: of the multiples of 0.01 from 0 to 20 one in six is none to it."""
    if validator.is_type(instance, "number") and exact(instance) % exact(factor):
        yield ValidationError(f"{instance!r} is not a multiple of {factor!r}")


def _unique_items(validator: Any, asked: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """The library compares each item with each other."""
    if asked and validator.is_type(instance, "array") and len(set(map(equality_text, instance))) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _is_of_format(name: str, value: object) -> bool:
    return not isinstance(value, str) or matches(FORMATS[name].pattern, value)


FORMAT_CHECKER = FormatChecker(())
"""Every format that is enforced, as it is enforced; others are annotations."""
for _name in FORMATS:
    FORMAT_CHECKER.checks(_name)(partial(_is_of_format, _name))
