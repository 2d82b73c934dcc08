"""Finished answers judged by a schema, as the `jsonschema` library understands it. Patterns and schemas are users': run it where a deadline
and a memory limit hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from grammar_service.errors import GrammarError, UnsupportedGrammar
from grammar_service.relaxation.texts import FORMAT_CHECKER, check_pattern, judging
from grammar_service.schema.json_schema import read_schema
from grammar_service.schema.json_text import Json, shared_json
from grammar_service.schema.keywords import dict_at, walk
from grammar_service.schema.pointer import join
from grammar_service.spec import GrammarSpec

LONGEST = 200
"""Characters of a message of the library's, which repeats what it is about."""


def judged(spec: GrammarSpec, answers: Sequence[str]) -> list[str | None]:
    """What is wrong with each answer, None where it is JSON that the schema allows. It is judged by what the schema was read as, and
    also by the schema as it stands where `$schema` names its dialect."""
    validators = [_validator(kind, schema, spec.formats) for kind, schema in _schemas(spec)]
    return [next(filter(None, (_fault(validator, answer) for validator in validators)), None) for answer in answers]


def check_judgeable(spec: GrammarSpec) -> None:
    """Raise UnsupportedGrammar where nobody could judge by a schema: it is none in its dialect, or has a pattern that is no regular
    language and that Python does not know."""
    for kind, schema in _schemas(spec):
        try:
            kind.check_schema(schema, format_checker=FormatChecker(()))
        except SchemaError as error:
            raise UnsupportedGrammar(f"it cannot be checked: {error.message[:LONGEST]}", join("", *error.absolute_path)) from None
    document = read_schema(spec.text, spec.formats).document
    # The library itself looks for those that are unevaluated.
    by_library = any(isinstance(schema, dict) and "unevaluatedProperties" in schema for _, schema in walk(document))
    for pointer, pattern in _patterns(document):
        try:
            check_pattern(pattern)
            if by_library:
                re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise UnsupportedGrammar(f"it cannot be checked: {str(error)[:LONGEST]}", pointer) from None


def _patterns(schema: Json) -> Iterator[tuple[str, str]]:
    for pointer, inner in walk(schema):
        if not isinstance(inner, dict):
            continue
        if isinstance(pattern := inner.get("pattern"), str):
            yield join(pointer, "pattern"), pattern
        for name in dict_at(inner, "patternProperties"):
            yield join(pointer, "patternProperties", name), name


def _schemas(spec: GrammarSpec) -> Iterator[tuple[Any, Any]]:
    """What an answer is judged by: classes of validators, whose protocol does not tell of all that is used here.

    Without `$schema` the library would take older forms for annotations."""
    read, written = read_schema(spec.text, spec.formats).document, shared_json(spec.text)
    yield Draft202012Validator, _without_dialect(read)
    if isinstance(written, dict) and isinstance(written.get("$schema"), str):
        try:
            kind = validator_for(written, default=Draft202012Validator)
        except ValueError:
            # The library parses the name as a URL.
            kind = Draft202012Validator
        yield kind, _without_dialect(written)


def _without_dialect(schema: Json) -> Any:
    """A reference to the root would have the library take its own class for the dialect."""
    return {name: value for name, value in schema.items() if name != "$schema"} if isinstance(schema, dict) else schema


def _validator(kind: type[Validator], schema: Any, formats: bool) -> Validator:
    # A registry that fetches nothing: the library's own asks the network for what it does not know.
    return judging(kind)(schema, registry=Registry(), format_checker=FORMAT_CHECKER if formats else None)


def _fault(validator: Validator, answer: str) -> str | None:
    try:
        error = next(iter(validator.iter_errors(json.loads(answer, object_pairs_hook=_unique))), None)
    except (ValueError, RecursionError) as fault:
        return f"it is not JSON that can be read: {fault}"
    except (re.error, Unresolvable, OverflowError, GrammarError) as fault:
        return f"it cannot be judged: {str(fault)[:LONGEST]}"
    return None if error is None else f"{join('', *error.absolute_path)}: {error.message[:LONGEST]}".removeprefix(": ")


def _unique(members: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("an object has a name twice")
    return found
