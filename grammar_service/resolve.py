"""From what the user asked for to the key under which the whole cluster knows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain

from grammar_service.backends import select_backend, select_stopgap
from grammar_service.backends.llguidance.any_order import has_any_order, keeps_declared_order
from grammar_service.backends.llguidance.backend import LlguidanceBackend, form_of
from grammar_service.backends.protocol import Backend
from grammar_service.backends.selection import backend_versions
from grammar_service.errors import GrammarError, UnsupportedGrammar
from grammar_service.key import KEY_VERSION, grammar_key
from grammar_service.limits import Limits, check_limits
from grammar_service.messages import CompileRequest, ReadyGrammar, Stopgap
from grammar_service.relaxation import relaxed
from grammar_service.relaxation.relaxed import Compile
from grammar_service.schema.dialects.dialect import UNNAMED
from grammar_service.schema.dialects.remarks import UNKNOWN_KEYWORD
from grammar_service.schema.json_schema import parse_schema
from grammar_service.schema.json_text import Json, shared_json
from grammar_service.schema.normal_form.normal import composes
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.tags.structural_tag import embedded_schemas
from grammar_service.warning import MOST, ConstraintWarning, first, shortened

DECLARED_ORDER = "declared_order"
QUICK_SCHEMA = 1024
"""Characters of a schema that is resolved in under 10 ms if it has quick keywords alone: rules of an object are compared pair by pair."""
QUICK_REGEX = 1024
QUICK_TEXT = 16_384
"""Characters of a grammar or of choices, which are read in proportion to their length."""
QUICK_KEYWORDS = frozenset(
    "type enum const properties required additionalProperties items anyOf $ref $defs definitions minimum maximum minItems maxItems "
    "minLength maxLength format nullable".split()
)
"""Those whose work is in proportion to their text, unless several schemas are about one value (`composes`). The others combine schemas, or
compare patterns."""
_SLOW_VALUES = re.compile(r'"additionalProperties"\s*:\s*\{|"idn-')
"""Other properties are compared with those that have names. The automaton of `idn-email` takes 0.2 s to make."""
_WITHOUT_ASSERTIONS = re.compile(r"(?:\\[^bB]|\[\^|[^\\^$(]|\((?!\?<?[=!])|(?<!.)\^|\$(?!.))*+", re.DOTALL)
"""A regex without look-around, `\\b`, and anchors inside of it: each of those multiplies the states of the automaton."""
_COMBINED = frozenset({"anyOf", "$ref", "const", "enum"})
"""Beside these, the automaton of a format is intersected with others: of `idn-email` and a constant in 80 ms."""
_WORD = re.compile(r'"([$\w]{1,24})"', re.ASCII)
_SLOW_KEYWORDS = UNNAMED.known - QUICK_KEYWORDS


@dataclass(frozen=True, slots=True)
class Resolution:
    """A spec within the limits, the backend that enforces all of it, and its key there; `stopgap` enforces all of it too, and is ready
    sooner. `library_source` is what the backend's library will be given, where that can be said (`Backend.library_source`). `warnings`
    are for the answer. `left_out` are JSON pointers, the first ones, of what the user's schema has besides, so that the answer is still to
    be checked."""

    spec: GrammarSpec
    key: str
    backend: str
    stopgap: Stopgap | None = None
    library_source: str | None = None
    warnings: tuple[ConstraintWarning, ...] = ()
    left_out: tuple[str, ...] = ()

    def request(self, tenant: str = "", deadline_s: float | None = None, pinned: bool = False) -> CompileRequest:
        """What to ask the compile pool; a pinned grammar is compiled ahead, so that it needs no stopgap."""
        stopgap = None if pinned else self.stopgap
        return CompileRequest(self.spec, self.key, self.backend, deadline_s, pinned, tenant, stopgap, self.library_source)

    def ready(self) -> ReadyGrammar:
        """For an engine whose replica finds the artifact by itself."""
        return ReadyGrammar(self.spec, self.key, self.backend, routing_key=self.key)


def warnings_of(spec: GrammarSpec) -> tuple[ConstraintWarning, ...]:
    """What asserts nothing in a spec's schemas, at JSON pointers into its text. Raises GrammarError as `resolve`."""
    return first(_warnings(spec))


def _order_warnings(spec: GrammarSpec, backend: Backend) -> Iterator[ConstraintWarning]:
    """Backends around others have the name of those in theirs."""
    if spec.kind is not GrammarKind.JSON_SCHEMA or not spec.any_order:
        return
    document = form_of(spec).document
    if keeps_declared_order(document) or (has_any_order(document) and not backend.name.endswith(LlguidanceBackend().name)):
        yield ConstraintWarning(DECLARED_ORDER, "", "The members of some objects stay in the order of `properties`.")


def refuse_unknown(spec: GrammarSpec) -> None:
    """Raises UnsupportedGrammar for a schema with an unknown keyword, if the spec `refuses_unknown`; else GrammarError as `resolve`."""
    if spec.refuses_unknown:
        for warning in _warnings(spec):
            if warning.code == UNKNOWN_KEYWORD:
                instead = f" Did you mean `{warning.did_you_mean}`?" if warning.did_you_mean else ""
                raise UnsupportedGrammar(warning.message + instead, warning.pointer)


def _warnings(spec: GrammarSpec) -> Iterator[ConstraintWarning]:
    """Of each schema the first ones, unknown keywords ahead."""
    if spec.kind is GrammarKind.JSON_SCHEMA:
        yield from parse_schema(spec.text, spec.closed, spec.formats).warnings
    elif spec.kind is GrammarKind.STRUCTURAL_TAG:
        for embedded in embedded_schemas(spec.text, spec.closed, spec.formats):
            yield from (replace(warning, pointer=embedded.place(warning.pointer)) for warning in embedded.schema.warnings)


def rules_of(limits: Limits, fingerprint: str) -> str:
    """A name for all that `resolve` goes by beside the spec: processes with the same one resolve alike."""
    parts = [str(KEY_VERSION), repr(limits), fingerprint, *backend_versions()]
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def resolve(spec: GrammarSpec, limits: Limits, fingerprint: str) -> Resolution:
    """Pure and quick: nothing is compiled.

    Raises:
        GrammarError: the spec is over a limit, not valid, or enforced by no backend.
    """
    check_limits(spec, limits)
    refuse_unknown(spec)
    backend = select_backend(spec)
    quick = select_stopgap(spec, backend)
    stopgap = Stopgap(grammar_key(spec, quick.name, quick.version, fingerprint), quick.name, quick.library_source(spec)) if quick else None
    key = grammar_key(spec, backend.name, backend.version, fingerprint)
    warnings = first(chain(_warnings(spec), _order_warnings(spec, backend)))
    return Resolution(spec, key, backend.name, stopgap, backend.library_source(spec), warnings)


def resolves_quickly(spec: GrammarSpec) -> bool:
    """Whether `resolve` takes under 10 ms of a processor, whatever a hostile sender has made of the spec."""
    match spec.kind:
        case GrammarKind.JSON_OBJECT:
            return True
        case GrammarKind.JSON_SCHEMA:
            return (
                not spec.any_order
                and len(spec.text) <= QUICK_SCHEMA
                and "\\" not in spec.text
                and not _is_slow(spec.text)
                and not _composes(spec.text)
            )
        case GrammarKind.REGEX:
            return len(spec.text) <= QUICK_REGEX and _WITHOUT_ASSERTIONS.fullmatch(spec.text) is not None
        case GrammarKind.STRUCTURAL_TAG:  # there are schemas in it
            return False
        case _:
            return len(spec.text) <= QUICK_TEXT


def _is_slow(text: str) -> bool:
    words = _WORD.findall(text)
    is_combined = "format" in words and not _COMBINED.isdisjoint(words)
    return is_combined or _SLOW_VALUES.search(text) is not None or not _SLOW_KEYWORDS.isdisjoint(words)


def _composes(text: str) -> bool:
    """Whether any object of it does: a reference may lead anywhere. Objects and arrays among its values are compared with the schemas
    around them."""
    try:
        waiting = [shared_json(text)]
    except GrammarError:  # it is refused as quickly
        return False
    while waiting:
        value = waiting.pop()
        if composes(value) or (isinstance(value, dict) and _has_large_values(value)):
            return True
        waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return False


def _has_large_values(schema: dict[str, Json]) -> bool:
    listed = schema.get("enum")
    return any(isinstance(value, dict | list) for value in (schema.get("const"), *(listed if isinstance(listed, list) else ())))


def resolve_relaxed(spec: GrammarSpec, limits: Limits, fingerprint: str, compiles: Compile | None = None) -> Resolution:
    """The same where no backend enforces all of a schema, or with `compiles` where its library cannot use it: the resolution of what is
    left of it. Takes as long as several: run it where a deadline holds. Raises as `resolve`."""
    check_limits(spec, limits)
    refuse_unknown(spec)
    less = relaxed(spec, compiles)
    resolution = resolve(less.spec, limits, fingerprint)
    about_order = [warning for warning in resolution.warnings if warning.code == DECLARED_ORDER]
    warnings = first(chain(less.warnings(), _warnings(spec), about_order))
    return replace(resolution, warnings=warnings, left_out=_told(less.left_out))


def _told(pointers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(shortened, pointers[:MOST]))
