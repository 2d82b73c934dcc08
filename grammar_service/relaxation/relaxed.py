"""Schemas that no backend enforces as they are, without what is in the way; what is left out is for a check of the finished answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from grammar_service.backends import faults_in_the_way
from grammar_service.errors import UnsupportedGrammar
from grammar_service.relaxation.judging import check_judgeable
from grammar_service.relaxation.leaving_out import as_written, is_closed, left_out, stands
from grammar_service.schema.fault import Fault
from grammar_service.schema.json_schema import read_schema
from grammar_service.schema.json_text import text_of
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.warning import ConstraintWarning

LEFT_OUT = "checked_afterwards"
STEPS, MOST_STEPS = 4, 64
"""Each costs as much as finding out that a schema is not enforced: up to 0.4 s. After the first STEPS, all places go at which the same
keyword is in the way, and after as many again all that are: one after another took 15 s for 36 places."""


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
    check_judgeable(spec)
    read = read_schema(spec.text, spec.formats)
    written = document = read.document
    less, gone = replace(spec, closed=spec.closed and is_closed(document)), list[str]()
    for number in range(MOST_STEPS):
        less = replace(less, text=text_of(document))
        if (refusal := _refusal(less)) is None:
            return Relaxed(less, tuple(dict.fromkeys(gone)))
        for pointer in refusal.places(number // STEPS):
            if pointer != refusal.place and not stands(document, pointer):
                continue
            step = left_out(document, pointer)
            if step is None:
                raise refusal.error
            document, places = step
            gone += [read.places.original(as_written(written, place)) for place in places]
    raise UnsupportedGrammar(f"too many assertions of the schema are not enforced, {len(gone)} and more", gone[0])


@dataclass(frozen=True, slots=True)
class _Refusal:
    """`place` is where it came to light; `others` are faults as well."""

    error: UnsupportedGrammar
    place: str
    others: tuple[str, ...] = ()

    def places(self, haste: int) -> list[str]:
        """Those to give up: the first one; those by the same keyword; or all."""
        keyword = self.place.rpartition("/")[2]
        given = [other for other in self.others if other.endswith(f"/{keyword}") or haste > 1]
        return [self.place, *(given if haste else ())]


def _refusal(spec: GrammarSpec) -> _Refusal | None:
    """Why no backend enforces all of the spec. Raises other GrammarErrors, and UnsupportedGrammar without a place."""
    try:
        faults = faults_in_the_way(spec)
    except UnsupportedGrammar as fault:
        if fault.pointer is None:
            raise
        return _Refusal(fault, fault.pointer)
    if not faults:
        return None
    place = _place(faults[0])
    error = UnsupportedGrammar(faults[0].text, place)
    if place is None:
        raise error
    return _Refusal(error, place, tuple(other.pointer for other in faults[1:] if other.pointer is not None))


def _place(fault: Fault) -> str | None:
    """The keyword at fault; or where the reason is, if that is somewhere else."""
    because, told = fault.because.pointer if fault.because else None, fault.pointer or ""
    return fault.pointer if because is None or f"{told}/".startswith(f"{because}/") else because
