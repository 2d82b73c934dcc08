"""What was promised of calls by handle, of the Responses API and of batches, beside chat completions over HTTP; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deployments.reporting.report import Row, Target
from load_tests.front_door.figures import EXTRACTION, NONE, WAYS, WHOLE, Found

HTTP, HANDLE, RESPONSES, BATCH = SIDES = ("HTTP", "handle", "Responses", "batch")
WORKLOADS = (EXTRACTION, NONE)
ALONE, BUSY = CLIENTS = (1, 32)
BATCH_CLIENTS = 64
"""Requests of `maskcast batch` at a time, as it has them where nobody says otherwise."""
_ANSWERS = {"stream": "streamed", "whole": "whole answers"}


def targets(rows: Sequence[Row]) -> list[Target]:
    """Ratios are medians over turns of those within a turn."""
    compared, responses = _compared(Found(rows, by=HTTP, ours=HANDLE)), _responses(Found(rows, by=RESPONSES, ours=HTTP))
    return [*compared, *responses, *_batch(Found(rows, by=HTTP, ours=BATCH)), *_sound(rows)]


def _compared(found: Found) -> Iterator[Target]:
    for way in WAYS:
        for workload, clients in found.cells(CLIENTS, way):
            where = f"{workload}, {_ANSWERS[way]}, {clients} client{'s' * (clients > 1)}"
            if clients == BUSY:
                more = found.ratio("requests_per_s", workload, clients, way)
                yield Target.at_least(f"{where}: requests a second, handle / HTTP", more, 0.95, "×")
            else:
                slower = found.ratio("latency_p50_ms", workload, clients, way)
                yield Target.at_most(f"{where}: median latency, handle / HTTP", slower, 1.1, "×")


def _responses(found: Found) -> Iterator[Target]:
    for way in WAYS:
        for workload, clients in found.cells([BUSY], way):
            where = f"{workload}, {_ANSWERS[way]}, {clients} clients"
            more = found.ratio("requests_per_s", workload, clients, way)
            yield Target.at_most(f"{where}: requests a second, chat completions / Responses", more, 1.1, "×")


def _batch(found: Found) -> Iterator[Target]:
    for workload, clients in found.cells([BATCH_CLIENTS], WHOLE):
        more = found.ratio("requests_per_s", workload, clients, WHOLE)
        yield Target.at_least(f"{workload}, {clients} at a time: requests a second, maskcast batch / HTTP", more, 0.95, "×")


def _sound(rows: Sequence[Row]) -> Iterator[Target]:
    yield Target.at_most("requests that were not answered", float(sum(row["failed"] for row in rows)), 0, "")
    yield Target.at_most("answers that are not what was asked for", float(sum(row["wrong"] for row in rows)), 0, "")
