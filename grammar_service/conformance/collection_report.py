"""What a run over a collection says: counts of each way, causes of refusals, and why an instance is judged otherwise than it is kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from grammar_service.conformance.collection import CHECKED, OURS, VALIDATOR, Findings, Judgement
from grammar_service.conformance.judging import Judged, Mark
from grammar_service.conformance.suite import Case
from grammar_service.errors import InvalidGrammar

_PREFIX = "no backend enforces the whole constraint: "
_BETWEEN = re.compile(r"; (?=/|`|[a-z])")
_ELSEWHERE = re.compile(r" \(/.*\)$")
_QUOTED = re.compile(r"'.*'|\"[^\"]*\"")


WELL_KNOWN = (
    "dependabot-2.0",
    "geojson",
    "github-action",
    "github-workflow",
    "kubernetes-definitions",
    "kustomization",
    "openapi-3.X",
    "package",
    "prometheus",
    "sarif",
    "schema-draft-v4",
    "tsconfig",
    "vega-lite",
    "web-manifest",
)
"""Schemas that many people use, told by name."""


class Explanation(StrEnum):
    """Why an instance is judged otherwise than the collection keeps it."""

    VALIDATOR = "a validator judges so too"
    FORMAT = "a validator judges so with formats"
    NONE = "unexplained"


@dataclass(frozen=True, slots=True)
class Count:
    """One way: schemas that it serves; of the others' instances none is judged. `reordered` valid ones are accepted with their members in
    the schema's order only."""

    schemas: int = 0
    served: int = 0
    valid: int = 0
    valid_accepted: int = 0
    valid_reordered: int = 0
    invalid: int = 0
    invalid_rejected: int = 0
    invalid_accepted: int = 0

    @property
    def correct(self) -> int:
        """Of all instances, those of refused schemas included."""
        return self.valid_accepted + self.valid_reordered + self.invalid_rejected


@dataclass(frozen=True, slots=True)
class Otherwise:
    """An instance that is kept as valid and rejected, or the other way round."""

    way: str
    schema: str
    case: str
    valid: bool
    explanation: Explanation


def counts(findings: Findings, way: str) -> Count:
    """`valid` and `invalid` are all instances, whether or not their schema is served."""
    found = [judgement.way(way) for judgement in findings.judgements]
    marks = Counter((case.valid, mark) for judgement in findings.judgements for case, mark in _marked(judgement, way))
    cases = Counter(case.valid for judgement in findings.judgements for case in judgement.cases)
    return Count(
        schemas=len(found),
        served=sum(judged.refused is None for judged in found),
        valid=cases[True],
        valid_accepted=marks[True, Mark.ACCEPTED],
        valid_reordered=marks[True, Mark.REORDERED],
        invalid=cases[False],
        invalid_rejected=marks[False, Mark.REJECTED],
        invalid_accepted=marks[False, Mark.ACCEPTED],
    )


def causes(findings: Findings, way: str = OURS) -> list[tuple[str, int, str]]:
    """Why schemas are refused, most frequent first: the cause, how often, and the name of a schema."""
    names: dict[str, list[str]] = {}
    for name, judged in refusals(findings, way):
        names.setdefault(cause_of(judged), []).append(name)
    return sorted(((cause, len(named), named[0]) for cause, named in names.items()), key=lambda row: (-row[1], row[0]))


def refusals(findings: Findings, way: str) -> list[tuple[str, Judged]]:
    """The schemas that a way refuses, and what it says."""
    return [(judgement.name, judged) for judgement in findings.judgements if (judged := judgement.way(way)).refused is not None]


def how_served(findings: Findings, name: str) -> tuple[str, str] | None:
    """How a schema is served, and why not by masks alone; None where the collection does not have it."""
    if name in findings.apart:
        return "set apart", findings.apart[name].value
    judgement = next((one for one in findings.judgements if one.name == name), None)
    if judgement is None:
        return None
    if not judgement.is_refused:
        return "by masks", ""
    return ("refused" if judgement.way(CHECKED).refused is not None else "with a check"), cause_of(judgement.way(OURS))


def unserved(findings: Findings) -> list[str]:
    """Schemas that are refused although a check is allowed, and that are no broken ones: not by the meta-schema of their dialect, and
    not for what no reader of a schema could make anything of."""
    no_schema = {*broken(findings)}
    return [name for name, judged in refusals(findings, CHECKED) if name not in no_schema and judged.code != InvalidGrammar.code]


def cause_of(judged: Judged) -> str:
    """The reason behind the first fault of a refusal, without the names and texts of its schema."""
    first = _BETWEEN.split((judged.refused or "").removeprefix(_PREFIX))[0].removeprefix(judged.pointer or "").strip()
    said, _, because = _ELSEWHERE.sub("", first).partition(": ")
    return _QUOTED.sub("…", because if because and said.endswith("enforced") else first)


def otherwise(findings: Findings, way: str) -> Iterator[Otherwise]:
    """All instances that a way judges otherwise than they are kept."""
    for judgement in findings.judgements:
        by_validator = {case.description: mark for case, mark in _marked(judgement, VALIDATOR)}
        for case, mark in _marked(judgement, way):
            if (mark is Mark.REJECTED) == case.valid:
                yield Otherwise(way, judgement.name, case.description, case.valid, _explained(case, by_validator.get(case.description)))


def _marked(judgement: Judgement, way: str) -> list[tuple[Case, Mark]]:
    """The cases with their marks; none where the schema is refused."""
    marks = judgement.way(way).marks
    return list(zip(judgement.cases, marks, strict=True)) if marks else []


def _explained(case: Case, validator: Mark | None) -> Explanation:
    if validator is Mark.FORMAT and case.valid:
        return Explanation.FORMAT
    if validator in ((Mark.REJECTED,) if case.valid else (Mark.ACCEPTED, Mark.FORMAT)):
        return Explanation.VALIDATOR
    return Explanation.NONE


def broken(findings: Findings) -> list[str]:
    """Schemas that are none by the meta-schema of their dialect."""
    return [judgement.name for judgement in findings.judgements if _is_broken(judgement)]


def _is_broken(judgement: Judgement) -> bool:
    return judgement.by_way[VALIDATOR].refused is not None
