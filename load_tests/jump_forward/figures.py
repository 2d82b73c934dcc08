"""From waves to rows, and from rows to ratios and targets; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from deployments.reporting.quantiles import median, quantile, ratio
from deployments.reporting.report import Row, Target

STOCK, UNCONSTRAINED, MASKCAST, OFF = "stock", "unconstrained", "maskcast", "jumping off"
CHARACTER, CITY, EXTRACTION, TOOLS, FREE = TASKS = ("character", "city", "extraction", "tools", "nothing forced")
TEKKEN = f"{CHARACTER} on Tekken"
LATENCY, THROUGHPUT = "latency", "throughput"
LARGE = 32
"""The batch of the throughput targets."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one arm did in one run of a task at one batch; seconds from the sending of each request."""

    task: str
    batch: int
    run: int
    arm: str
    seconds: float
    forwards: int
    seats: int
    tokens: Sequence[int]
    first_s: Sequence[float]
    whole_s: Sequence[float]
    same_text: int

    def row(self) -> Row:
        """Forwards per request are those in which it took part; `same_text`: of how many requests stock vLLM wrote the same text."""
        requests = len(self.tokens)
        return {
            "task": self.task,
            "batch": self.batch,
            "run": self.run,
            "arm": self.arm,
            "requests": requests,
            "forwards": self.forwards,
            "forwards_per_request": round(self.seats / requests, 2),
            "tokens_per_request": round(sum(self.tokens) / requests, 2),
            "same_text": self.same_text,
            "requests_per_s": round(requests / self.seconds, 3),
            "tokens_per_s": round(sum(self.tokens) / self.seconds, 2),
            "first_token_p50_ms": _ms(self.first_s, 0.5),
            "latency_p50_ms": _ms(self.whole_s, 0.5),
            "latency_p99_ms": _ms(self.whole_s, 0.99),
        }


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times better than stock vLLM an arm was: medians over runs of the ratios within each run."""

    task: str
    batch: int
    arm: str
    forwards: float
    latency: float
    throughput: float


def ratios(rows: Sequence[Row]) -> list[Ratio]:
    """One for every task, batch and arm but stock's own, in the order of the rows. Throughput is requests per second, since two arms may
    write the same text in different tokens."""
    cells = dict.fromkeys((row["task"], row["batch"], row["arm"]) for row in rows if row["arm"] != STOCK)
    return [_ratio(rows, *cell) for cell in cells]


def targets(found: Sequence[Ratio], on_gpu: bool) -> list[Target]:
    """What was promised, of the tasks and batches that were run."""
    return [*_jumping(found, on_gpu), *_never_worse(found), *_ahead_of_unconstrained(found)]


def _jumping(found: Sequence[Ratio], on_gpu: bool) -> Iterator[Target]:
    ours = [one for one in found if one.arm == MASKCAST]
    for one in _at(ours, CHARACTER, 1):
        yield Target.at_least(f"{CHARACTER}, forwards per request, stock / ours", one.forwards, 3, "×")
    for task in (CHARACTER, EXTRACTION):
        for one in _at(ours, task, 1):
            yield Target.at_least(f"{task}, 1 request, latency, stock / ours", one.latency, 2, "×")
        for one in _at(ours, task, LARGE):
            yield Target.at_least(f"{task}, {LARGE} requests, throughput, ours / stock", one.throughput, 2.5 if on_gpu else 1.8, "×")
    for one in _at(ours, TEKKEN, 1):
        yield Target.at_least(f"{TEKKEN}, 1 request, latency, stock / ours", one.latency, 1, "×")
    for one in _at(ours, TEKKEN, LARGE):
        yield Target.at_least(f"{TEKKEN}, {LARGE} requests, throughput, ours / stock", one.throughput, 1, "×")


def _never_worse(found: Sequence[Ratio]) -> Iterator[Target]:
    ours = [one for one in found if one.arm == MASKCAST]
    for what, of in _MEASURES:
        yield Target.at_least(f"worst of all tasks and batches, {what}", min(map(of, ours), default=None), 0.97, "×")
        for one in (one for one in ours if one.task == FREE and one.batch == LARGE):
            yield Target.at_least(f"{FREE}, {LARGE} requests, {what}", of(one), 0.97, "×")


def _ahead_of_unconstrained(found: Sequence[Ratio]) -> Iterator[Target]:
    """Over the tasks in which something is forced: a constraint that decides nothing can only cost."""
    forcing = [one for one in found if one.task != FREE]
    free = {(one.task, one.batch): one for one in forcing if one.arm == UNCONSTRAINED}
    pairs = [(one, free[one.task, one.batch]) for one in forcing if one.arm == MASKCAST and (one.task, one.batch) in free]
    for (what, of), batch in zip(_MEASURES, (1, LARGE), strict=True):
        for ours, theirs in pairs:
            if ours.batch == batch:
                name = f"{ours.task}, {batch} request{'s'[: batch > 1]}, {what} against unconstrained vLLM"
                yield Target.at_least(name, ratio(of(ours), of(theirs)), 1, "×")


_MEASURES: tuple[tuple[str, Callable[[Ratio], float]], ...] = (
    (LATENCY, lambda one: one.latency),
    (THROUGHPUT, lambda one: one.throughput),
)


def _at(found: Iterable[Ratio], task: str, batch: int) -> list[Ratio]:
    return [one for one in found if (one.task, one.batch) == (task, batch)]


def _ratio(rows: Sequence[Row], task: str, batch: int, arm: str) -> Ratio:
    runs = {(row["run"], row["arm"]): row for row in rows if (row["task"], row["batch"]) == (task, batch)}
    pairs = [(runs[run, STOCK], row) for (run, name), row in runs.items() if name == arm and (run, STOCK) in runs]

    def less(figure: str) -> float:
        return median(stock[figure] / row[figure] for stock, row in pairs) or 0.0

    more = median(row["requests_per_s"] / stock["requests_per_s"] for stock, row in pairs) or 0.0
    return Ratio(task, batch, arm, less("forwards_per_request"), less("latency_p50_ms"), more)


def _ms(seconds: Sequence[float], share: float) -> float:
    return round((quantile(seconds, share) or 0.0) * 1000, 2)
