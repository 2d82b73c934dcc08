"""Samples as rows of a report, a series a line, so that what was found can be judged anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deployments.reporting.report import Row
from load_tests.soak.sampling import Sample

SECONDS, ENDED = "seconds", "requests that had ended"
_SAMPLED = "sampled"


def written(samples: Sequence[Sample]) -> list[Row]:
    """When each was taken, in seconds and in requests, and then their series. What a sample has not is 0 in it, as it is for `trends`."""
    names = sorted({name for sample in samples for name in sample.values})
    columns = {SECONDS: [sample.at_s for sample in samples], ENDED: [float(sample.ended) for sample in samples]}
    columns |= {name: [sample.values.get(name, 0.0) for sample in samples] for name in names}
    return [{_SAMPLED: name, "values": " ".join(f"{value:.6g}" for value in values)} for name, values in columns.items()]


def read(rows: Iterable[Row]) -> list[Sample]:
    """From all rows of a report."""
    columns = {str(row[_SAMPLED]): [float(value) for value in row["values"].split()] for row in rows if _SAMPLED in row}
    seconds, ended = columns.pop(SECONDS), columns.pop(ENDED)
    return [
        Sample(at_s, round(requests), {name: values[number] for name, values in columns.items()})
        for number, (at_s, requests) in enumerate(zip(seconds, ended, strict=True))
    ]
