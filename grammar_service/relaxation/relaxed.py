"""Schemas that no backend enforces as they are, without what is in the way; what is left out is for a check of the finished answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from grammar_service.backends import faults_as_written, faults_in_the_way
from grammar_service.errors import GrammarError, GrammarTooLarge, UnsupportedGrammar
from grammar_service.relaxation.judging import check_judgeable
from grammar_service.relaxation.leaving_out import as_written, heaviest, is_closed, left_out, stands
from grammar_service.schema.fault import Fault
from grammar_service.schema.json_schema import read_schema
from grammar_service.schema.json_text import shared_json, text_of
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.warning import ConstraintWarning

LEFT_OUT = "checked_afterwards"
STEPS, MOST_STEPS = 4, 64
"""Each costs as much as finding out that a schema is not enforced: up to 0.4 s. After the first STEPS, all places go at which the same
keyword is in the way, and after as many again all that are: one after another took 15 s for 36 places."""
MOST_TRIALS, MOST_TRIALS_BY_FAULTS = 6, 2
"""Of compiling, up to a second each. What makes out most of a schema is half of it at least, or much of a flat one."""

Compile = Callable[[GrammarSpec], object]
"""Raises UnsupportedGrammar, GrammarTooLarge: a library cannot use the spec, though its backend enforces it."""


class Relax(StrEnum):
    """What may be left out of a schema: nothing; what no backend enforces; or also what its library cannot use after all."""

    NOTHING = "nothing"
    UNENFORCED = "unenforced"
    UNCOMPILED = "uncompiled"


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


def relaxed(spec: GrammarSpec, compiles: Compile | None = None) -> Relaxed:
    """The spec without what no backend enforces of it. Whatever a value of the user's schema is, it is one of this. With `compiles` it is
    also without what is in the way there: nobody can name that, so more goes than need be.

    Raises:
        GrammarError: it is no JSON Schema, is at fault in itself, or has what could not be checked either.
    """
    if spec.kind is not GrammarKind.JSON_SCHEMA or (compiles is None and _refusal(spec) is None):
        return Relaxed(spec)
    read = read_schema(spec.text, spec.formats)
    written = document = read.document
    less, gone, trials = replace(spec, closed=spec.closed and is_closed(document)), list[str](), 0
    for number in range(MOST_STEPS):
        less = replace(less, text=text_of(document))
        refusal = _refusal(less, number // STEPS)
        if refusal is None and compiles is not None:
            refusal, trials = _tried(less, compiles, trials), trials + 1
        if refusal is None:
            return Relaxed(less, tuple(dict.fromkeys(gone))) if gone else Relaxed(spec)
        if not gone:
            check_judgeable(spec)
        for pointer in refusal.places():
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
    """`place` is where it came to light; `others` are faults as well. `haste`: 0 where only the first one is given up, 1 also those by the
    same keyword, and from 2 on all."""

    error: GrammarError
    place: str
    others: tuple[str, ...] = ()
    haste: int = 0

    def places(self) -> list[str]:
        """Those to give up."""
        keyword = self.place.rpartition("/")[2]
        given = [other for other in self.others if other.endswith(f"/{keyword}") or self.haste > 1]
        return [self.place, *(given if self.haste else ())]


def _tried(spec: GrammarSpec, compiles: Compile, trials: int) -> _Refusal | None:
    """Why a library cannot use the spec, which its backend enforces. It is due to what had to be rewritten for it, if there is anything:
    first those places are given up. Else to the schema's size, so that the part goes which makes out most of it. After MOST_TRIALS the
    compiler's error is raised."""
    try:
        compiles(spec)
    except (UnsupportedGrammar, GrammarTooLarge) as error:
        if trials == MOST_TRIALS:
            raise
        faults = faults_as_written(spec) if trials < MOST_TRIALS_BY_FAULTS else []
        places = [fault.pointer for fault in faults if fault.pointer is not None] or [heaviest(shared_json(spec.text))]
        return _Refusal(error, places[0], tuple(places[1:]), trials + 1)
    return None


def _refusal(spec: GrammarSpec, haste: int = 0) -> _Refusal | None:
    """Why no backend enforces all of the spec. Raises other GrammarErrors, and UnsupportedGrammar without a place."""
    try:
        faults = faults_in_the_way(spec)
    except UnsupportedGrammar as fault:
        if fault.pointer is None:
            raise
        return _Refusal(fault, fault.pointer, haste=haste)
    if not faults:
        return None
    place = _place(faults[0])
    error = UnsupportedGrammar(faults[0].text, place)
    if place is None:
        raise error
    return _Refusal(error, place, tuple(other.pointer for other in faults[1:] if other.pointer is not None), haste)


def _place(fault: Fault) -> str | None:
    """The keyword at fault; or where the reason is, if that is somewhere else."""
    because, told = fault.because.pointer if fault.because else None, fault.pointer or ""
    return fault.pointer if because is None or f"{told}/".startswith(f"{because}/") else because
