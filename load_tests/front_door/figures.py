"""From answers to rows, and from rows to ratios and targets; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from deployments.reporting.quantiles import median, quantile, ratio
from deployments.reporting.report import Row, Target
from load_tests.front_door.clients.messages import Answer
from load_tests.front_door.processor_time import in_front

STOCK, OURS = SIDES = ("stock", "maskcast")
WORKLOADS = FREE, EXTRACTION, CHARACTER, NONE = ("nothing forced", "extraction", "character", "none")
STREAM, WHOLE = WAYS = ("stream", "whole")
BUSY = (32, 64)
"""Clients of the targets of throughput."""
THROUGHPUT = {NONE: 0.9, EXTRACTION: 1.0, CHARACTER: 1.8}
LATENCY = {NONE: 1.1, EXTRACTION: 0.8, CHARACTER: 0.4}
OK = 200


@dataclass(frozen=True, slots=True)
class Cell:
    """What one side did for `clients` at a time in a window of `seconds`; `used` are seconds of processor time by part, `client_s` those of
    the clients themselves, `foreign_s` those of everything else on the machine."""

    turn: int
    side: str
    workload: str
    clients: int
    way: str
    seconds: float
    answers: Sequence[Answer]
    used: Mapping[str, float]
    client_s: float
    foreign_s: float
    wrong: int

    def row(self) -> Row:
        """`requests` ended within the window. How many there were a second, and what they cost, is reckoned with those at its ends in
        proportion: clients in step with one another would else be counted by the round. `cut`: answers that ended at their most tokens;
        `processor_ms` a request, by part; `front_ms`: of all but the engine; `foreign_share` of a processor."""
        good = [answer for answer in self.answers if answer.status == OK and answer.finish not in ("", "error")]
        ended = [answer for answer in good if answer.ended]
        done = sum(answer.share for answer in good)
        first = [answer.first_s for answer in ended if answer.first_s is not None]
        whole = [answer.latency_s for answer in ended]
        return {
            "turn": self.turn,
            "side": self.side,
            "workload": self.workload,
            "clients": self.clients,
            "answers": self.way,
            "seconds": round(self.seconds, 3),
            "requests": len(ended),
            "failed": len(self.answers) - len(good),
            "wrong": self.wrong,
            "cut": sum(answer.finish == "length" for answer in ended),
            "requests_per_s": round(done / self.seconds, 2),
            "pieces_per_request": _per(sum(answer.pieces for answer in good), len(good), 1),
            "first_text_p50_ms": _ms(first, 0.5),
            "first_text_p99_ms": _ms(first, 0.99),
            "latency_p50_ms": _ms(whole, 0.5),
            "latency_p99_ms": _ms(whole, 0.99),
            "front_ms": _per(in_front(self.used) * 1000, done, 2),
            "client_ms": _per(self.client_s * 1000, done, 2),
            "processor_ms": {part: _per(seconds * 1000, done, 2) for part, seconds in sorted(self.used.items())},
            "foreign_share": round(self.foreign_s / self.seconds, 3),
        }


def targets(rows: Sequence[Row]) -> list[Target]:
    """What was promised, of the cells that were run; ratios are medians over turns of those within a turn."""
    found = Found(rows)
    return [*_throughput(found), *_worst(found), *_alone(found), *_sound(rows)]


@dataclass(frozen=True, slots=True)
class Found:
    """Of two sides: what is compared, and with what."""

    rows: Sequence[Row]
    by: str = STOCK
    ours: str = OURS

    def cells(self, clients: Iterable[int], way: str) -> list[tuple[str, int]]:
        """Workloads and numbers of clients that were run, in the order of the rows."""
        wanted = set(clients)
        some = ((row["workload"], row["clients"]) for row in self.rows if row["answers"] == way and row["clients"] in wanted)
        return list(dict.fromkeys(some))

    def side(self, side: str, workload: str, clients: int, way: str) -> list[Row]:
        wanted = (side, workload, clients, way)
        return [row for row in self.rows if (row["side"], row["workload"], row["clients"], row["answers"]) == wanted]

    def ratio(self, figure: str, workload: str, clients: int, way: str = STREAM) -> float | None:
        """Ours by the other's."""
        by = {row["turn"]: row[figure] for row in self.side(self.by, workload, clients, way)}
        ours = self.side(self.ours, workload, clients, way)
        ratios = [ratio(row[figure], by.get(row["turn"])) for row in ours]
        return median(one for one in ratios if one is not None)


def _throughput(found: Found) -> Iterator[Target]:
    for workload, clients in found.cells(BUSY, STREAM):
        if (bound := THROUGHPUT.get(workload)) is not None:
            name = f"{workload}, {clients} streaming clients: requests a second, ours / stock"
            yield Target.at_least(name, found.ratio("requests_per_s", workload, clients), bound, "×")


def _worst(found: Found) -> Iterator[Target]:
    """Of all workloads with 32 and 64 streaming clients."""
    cells = found.cells(BUSY, STREAM)
    if not cells:
        return

    def ours_by_stock(figure: str) -> float | None:
        return _largest(found.ratio(figure, *cell) for cell in cells)

    spread = _largest(_median_of(found.side(OURS, *cell, STREAM), _spread) for cell in cells)
    where = f"worst workload, {' and '.join(map(str, dict.fromkeys(clients for _, clients in cells)))} streaming clients"
    yield Target.at_most(f"{where}: p99 time to first token, ours / stock", ours_by_stock("first_text_p99_ms"), 1.25, "×")
    yield Target.at_most(f"{where}: p99 of latency / median", spread, 2.5, "×")
    yield Target.at_most(f"{where}: processor time in front of the engine a request, ours / stock", ours_by_stock("front_ms"), 2, "×")


def _alone(found: Found) -> Iterator[Target]:
    for workload, clients in found.cells((1,), STREAM):
        if (bound := LATENCY.get(workload)) is not None:
            name = f"{workload}, 1 client: median latency, ours / stock"
            yield Target.at_most(name, found.ratio("latency_p50_ms", workload, clients), bound, "×")


def _sound(rows: Sequence[Row]) -> Iterator[Target]:
    yield Target.at_most("requests that were not answered", float(sum(row["failed"] for row in rows)), 0, "")
    yield Target.at_most("answers that are not what was asked for", float(sum(row["wrong"] for row in rows)), 0, "")


def _spread(row: Row) -> float | None:
    return ratio(row["latency_p99_ms"], row["latency_p50_ms"])


def _median_of(rows: Iterable[Row], of: Callable[[Row], float | None]) -> float | None:
    return median(one for one in map(of, rows) if one is not None)


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _per(total: float, of: float, digits: int) -> float | None:
    return round(total / of, digits) if of else None


def _ms(seconds: Sequence[float], share: float) -> float | None:
    found = quantile(seconds, share)
    return None if found is None else round(found * 1000, 1)
