"""Schemas that no backend enforces as they are, without what is in the way; what is left out is for a check of the finished answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from grammar_service.backends import fault_in_the_way
from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.fault import Fault
from grammar_service.schema.json_text import Json, shared_json, text_of
from grammar_service.schema.judging import check_judgeable, unjudged_formats
from grammar_service.schema.relaxing import as_written, is_closed, left_out
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.warning import ConstraintWarning

LEFT_OUT = "checked_afterwards"
MOST_STEPS = 64
"""Each costs as much as finding out that a schema is not enforced: at most 0.3 s."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A spec that a backend enforces, and the JSON pointers of what the user's has besides. With nothing left out it is the user's own."""

    spec: GrammarSpec
    left_out: tuple[str, ...] = ()

    def warnings(self) -> Iterator[ConstraintWarning]:
        for pointer in self.left_out:
            keyword = pointer.rpartition("/")[2] or "the schema"
            message = f"`{keyword}` is not enforced while an answer is written; the finished answer is checked."
            yield ConstraintWarning(LEFT_OUT, pointer, message)


def relaxed(spec: GrammarSpec) -> Relaxed:
    """The spec without what no backend enforces of it. Whatever a value of the user's schema is, it is one of this.

    Raises:
        GrammarError: it is no JSON Schema, is at fault in itself, or has what could not be checked either.
    """
    if spec.kind is not GrammarKind.JSON_SCHEMA or _refusal(spec) is None:
        return Relaxed(spec)
    written = document = shared_json(spec.text)
    check_judgeable(written)
    less, gone = replace(spec, closed=spec.closed and is_closed(document)), list[str]()
    for _ in range(MOST_STEPS):
        less = replace(less, text=text_of(document))
        if (refusal := _refusal(less)) is None:
            _check_formats(written, document)
            return Relaxed(less, tuple(dict.fromkeys(gone)))
        step = left_out(document, refusal.pointer) if refusal.pointer is not None else None
        if step is None:
            raise refusal
        document, places = step
        gone += [as_written(written, place) for place in places]
    raise UnsupportedGrammar(f"more than {MOST_STEPS} assertions of the schema are not enforced", gone[0])


def _refusal(spec: GrammarSpec) -> UnsupportedGrammar | None:
    """Why no backend enforces all of the spec, at the place where that came to light. Raises other GrammarErrors."""
    try:
        fault = fault_in_the_way(spec)
    except UnsupportedGrammar as error:
        return error
    if fault is None:
        return None
    return UnsupportedGrammar(fault.text, _place(fault))


def _place(fault: Fault) -> str | None:
    """The keyword at fault; or where the reason is, if that is somewhere else."""
    because, told = fault.because.pointer if fault.because else None, fault.pointer or ""
    return fault.pointer if because is None or f"{told}/".startswith(f"{because}/") else because


def _check_formats(written: Json, kept: Json) -> None:
    """Raise UnsupportedGrammar for a format that is left out of the grammar and that nobody would check."""
    enforced = {name for _, name in unjudged_formats(kept)}
    for pointer, name in unjudged_formats(written):
        if name not in enforced:
            raise UnsupportedGrammar(f"the format {name[:40]!r} is neither enforced nor checked", pointer)
