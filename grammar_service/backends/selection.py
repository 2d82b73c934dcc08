"""Which backend serves a spec: the first that enforces all of it exactly. Pure: the same in every process."""

from __future__ import annotations

from dataclasses import replace

from grammar_service.backends.automata.backend import AutomataBackend
from grammar_service.backends.canonical.backend import CanonicalBackend
from grammar_service.backends.channels.harmony import HarmonyBackend
from grammar_service.backends.channels.kimi import KimiBackend
from grammar_service.backends.llguidance.any_order import has_any_order
from grammar_service.backends.llguidance.backend import LlguidanceBackend, form_of
from grammar_service.backends.llguidance.support import llguidance_faults
from grammar_service.backends.protocol import Backend, Fault
from grammar_service.backends.xgrammar.backend import XgrammarBackend
from grammar_service.backends.xgrammar.support import allow_list
from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.json_schema import parse_schema
from grammar_service.spec import COMPACT, HARMONY, JSON_KINDS, KIMI_K3, GrammarKind, GrammarSpec

_OF_CHANNELS: dict[str, type[HarmonyBackend | KimiBackend]] = {HARMONY: HarmonyBackend, KIMI_K3: KimiBackend}
AROUND = (CanonicalBackend, *_OF_CHANNELS.values())
"""Backends that stand around others."""
MOST_NAMED = 5
"""Places at fault that one message names."""


def backend_named(name: str) -> Backend:
    """A fresh backend. Raises UnsupportedGrammar: there is none of that name."""
    for backend in _all():
        if backend.name == name:
            return backend
    raise UnsupportedGrammar(f"there is no backend named {name[:40]!r}")


def loading_backends(cache_bytes: int) -> dict[str, Backend]:
    """All backends by name, for one who loads. One compiler a vocabulary compiles what comes as a recipe; it keeps so much."""
    xgrammar = XgrammarBackend(cache_bytes=cache_bytes)
    return {backend.name: backend for backend in _around(xgrammar)}


def backend_versions() -> list[str]:
    """Of all backends, with their names."""
    return [f"{backend.name} {backend.version}" for backend in _all()]


def select_backend(spec: GrammarSpec) -> Backend:
    """The backend for a spec: for Lark and compact JSON llguidance, for members in any order it or else xgrammar, for other JSON and
    choices xgrammar or else llguidance, for regexes automata, with xgrammar for what is too large, else xgrammar; for a spec that is
    `canonical` or in `channels`, around that one.

    Raises:
        UnsupportedGrammar: no backend enforces all of it; pointer and message name the first keyword at fault.
        InvalidGrammar, GrammarTooLarge: the spec itself is at fault.
    """
    found = _judged(spec)
    if isinstance(found, list):
        raise _refusal(found)
    if spec.channels:
        return _OF_CHANNELS[spec.channels](found)
    return CanonicalBackend(found) if spec.canonical else found


def faults_in_the_way(spec: GrammarSpec) -> list[Fault]:
    """Why no backend enforces all of a spec, one fault a place and the weightiest first; [] where one does. Raises as `select_backend`,
    where the spec itself is at fault."""
    found = _judged(spec)
    return found if isinstance(found, list) else []


def faults_as_written(spec: GrammarSpec) -> list[Fault]:
    """What the selected backend would not enforce exactly of a JSON Schema as it is written, so that its library gets another form of it.
    Raises as `select_backend`."""
    backend = select_backend(replace(spec, canonical=False, channels=""))
    faults_of = allow_list(spec) if backend.name == XgrammarBackend().name else llguidance_faults
    return parse_schema(spec.text, spec.closed, spec.formats).faults_as_written(faults_of)


def _judged(spec: GrammarSpec) -> Backend | list[Fault]:
    """The backend for a spec, or what is in the way."""
    refused: list[Fault] = []
    for backend in _candidates(spec):
        faults = backend.unsupported(spec)
        if not faults:
            return backend
        # The last candidate's faults come first: it enforces the most, and so names the keyword that is really in the way.
        refused = [*faults, *refused]
    return _by_place(refused)


def _by_place(faults: list[Fault]) -> list[Fault]:
    """The first fault of each place; those with a reason before the others, which might have been rewritten."""
    places: dict[str, Fault] = {}
    for fault in sorted(faults, key=lambda fault: (fault.because is None, fault.pointer is None)):
        places.setdefault(fault.message if fault.pointer is None else fault.pointer, fault)
    return list(places.values())


def _refusal(told: list[Fault]) -> UnsupportedGrammar:
    named = "; ".join(f"{fault.pointer or ''} {fault.text}".strip() for fault in told[:MOST_NAMED])
    return UnsupportedGrammar(f"no backend enforces the whole constraint: {named}", told[0].pointer)


def select_stopgap(spec: GrammarSpec, backend: Backend) -> Backend | None:
    """The backend that can stand in while `backend`, the selected one, compiles: llguidance, which is ready in about a millisecond,
    where it enforces all of the spec too. None for a spec that is `canonical`: the first one takes as long on either."""
    _, llguidance = _backends()
    stopgap: Backend = _OF_CHANNELS[spec.channels](llguidance) if spec.channels else llguidance
    if spec.canonical or backend.name == stopgap.name or llguidance.unsupported(spec):
        return None
    return stopgap


def _candidates(spec: GrammarSpec) -> list[Backend]:
    xgrammar, llguidance = _backends()
    if spec.kind is GrammarKind.LARK or (spec.kind in JSON_KINDS and spec.whitespace == COMPACT):
        return [llguidance]
    if spec.kind is GrammarKind.JSON_SCHEMA and spec.any_order and has_any_order(form_of(spec).document):
        return [llguidance, xgrammar]
    if spec.kind is GrammarKind.REGEX:
        return [AutomataBackend(xgrammar)]
    return [xgrammar, llguidance] if spec.kind in JSON_KINDS or spec.kind is GrammarKind.CHOICE else [xgrammar]


def _all() -> list[Backend]:
    return _around(XgrammarBackend())


def _around(xgrammar: XgrammarBackend) -> list[Backend]:
    plain = (xgrammar, LlguidanceBackend(), AutomataBackend(xgrammar))
    return [*plain, *(kind(backend) for kind in AROUND for backend in plain)]


def _backends() -> tuple[Backend, Backend]:
    return XgrammarBackend(), LlguidanceBackend()
