"""Finished answers judged by a schema, as the `jsonschema` library understands it. Patterns and schemas are users': run it where a deadline
and a memory limit hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.json_schema import read_schema
from grammar_service.schema.json_text import Json, shared_json
from grammar_service.schema.keywords import walk
from grammar_service.schema.pointer import join
from grammar_service.spec import GrammarSpec

LONGEST = 200
"""Characters of a message of the library's, which repeats what it is about."""
_UNJUDGED = frozenset(
    "date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference iri iri-reference uuid uri-template "
    "json-pointer relative-json-pointer regex".split()
) - frozenset(Draft202012Validator.FORMAT_CHECKER.checkers)
"""Formats that JSON Schema defines, and for which the library would need packages that are not there."""


def judged(spec: GrammarSpec, answers: Sequence[str]) -> list[str | None]:
    """What is wrong with each answer, None where it is JSON that the schema allows. It is judged by what the schema was read as, and
    also by the schema as it stands where `$schema` names its dialect."""
    validators = [_validator(kind, schema, spec.formats) for kind, schema in _schemas(spec)]
    return [next(filter(None, (_fault(validator, answer) for validator in validators)), None) for answer in answers]


def check_judgeable(spec: GrammarSpec) -> None:
    """Raise UnsupportedGrammar where the library could not judge by a schema: it is none in its dialect, or has a pattern that Python does
    not know."""
    for kind, schema in _schemas(spec):
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            raise UnsupportedGrammar(f"it cannot be checked: {error.message[:LONGEST]}", join("", *error.absolute_path)) from None
    for pointer, pattern in _patterns(read_schema(spec.text, spec.formats).document):
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise UnsupportedGrammar(f"it cannot be checked: {str(error)[:LONGEST]}", pointer) from None


def unjudged_formats(schema: Json) -> Iterator[tuple[str, str]]:
    """The formats in a schema that assert something and that the library lets pass, with their pointers; unknown ones are annotations."""
    for pointer, inner in walk(schema):
        if isinstance(inner, dict) and isinstance(named := inner.get("format"), str) and named in _UNJUDGED:
            yield join(pointer, "format"), named


def _patterns(schema: Json) -> Iterator[tuple[str, str]]:
    for pointer, inner in walk(schema):
        if not isinstance(inner, dict):
            continue
        if isinstance(pattern := inner.get("pattern"), str):
            yield join(pointer, "pattern"), pattern
        names = inner.get("patternProperties")
        for name in names if isinstance(names, dict) else ():
            yield join(pointer, "patternProperties", name), name


def _schemas(spec: GrammarSpec) -> Iterator[tuple[type[Validator], Any]]:
    """What an answer is judged by. Without `$schema` the library would take older forms for annotations."""
    read, written = read_schema(spec.text, spec.formats).document, shared_json(spec.text)
    yield Draft202012Validator, {name: value for name, value in read.items() if name != "$schema"} if isinstance(read, dict) else read
    if isinstance(written, dict) and "$schema" in written:
        yield validator_for(written, default=Draft202012Validator), written


def _validator(kind: type[Validator], schema: Any, formats: bool) -> Validator:
    # A registry that fetches nothing: the library's own asks the network for what it does not know.
    return kind(schema, registry=Registry(), format_checker=kind.FORMAT_CHECKER if formats else None)


def _fault(validator: Validator, answer: str) -> str | None:
    try:
        error = next(iter(validator.iter_errors(json.loads(answer))), None)
    except (ValueError, RecursionError) as fault:
        return f"it is not JSON that can be read: {fault}"
    except (re.error, Unresolvable, OverflowError) as fault:
        return f"it cannot be judged: {str(fault)[:LONGEST]}"
    return None if error is None else f"{join('', *error.absolute_path)}: {error.message[:LONGEST]}".removeprefix(": ")
