"""What was promised of checks and costs; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deployments.reporting.report import Row, Target

TABLE_SECONDS, TABLE_MEGABYTES = 3, 100
CACHED_ROW_US, COLD_ROW_US = 20, 2000
NARROW_MS = 0.3
LEAST_PAIRS, LEAST_ANSWERS, LEAST_ENDED = 100_000, 10_000, 0.95


def check_targets(rows: Sequence[Row]) -> list[Target]:
    """Of the checks and costs, where they were made."""
    if not any(row["part"] == "theorem" for row in rows):
        return []
    return [*_checks(rows), *_answers(rows), *_costs(rows)]


def _checks(rows: Sequence[Row]) -> Iterator[Target]:
    by_part = {part: _of(rows, part) for part in ("theorem", "merging", "pairs", "encoder")}
    yield _none_wrong("sequences that their pairs do not decide", by_part["theorem"])
    yield _none_wrong("random automata that DirectMerge or CartesianMerge gets wrong", by_part["merging"])
    yield _none_wrong("pairs judged otherwise than by tiktoken", by_part["pairs"])
    yield Target.at_least("pairs tried against tiktoken", _total(by_part["pairs"], "tried"), LEAST_PAIRS, "")
    for name in dict.fromkeys(row["tokenizer"] for row in by_part["encoder"]):
        of_one = [row for row in by_part["encoder"] if row["tokenizer"] == name]
        yield _none_wrong(f"{name}: judged otherwise than by the encoder", of_one)


def _answers(rows: Sequence[Row]) -> Iterator[Target]:
    """Of the suite, where it was given."""
    for row in _of(rows, "suite"):
        if "left_out" not in row:
            name = "valid instances of the official suite that canonical grammars refuse, and plain ones do not"
            yield Target.at_most(f"{name}, of {row['texts']:,}", row["refused"] if row["texts"] else None, 0, "")
    found = _of(rows, "answers")
    tried = _total(found, "tried")
    yield Target.at_least("answers drawn under everyday grammars", tried, LEAST_ANSWERS, "")
    yield Target.at_least("answers that ended", _total(found, "ended") / tried if tried else None, LEAST_ENDED, "")
    for what, name in (
        ("stuck", "answers that got stuck"),
        ("not_canonical", "answers that are not the tokenizer's own, without a fall-back"),
    ):
        yield Target.at_most(f"{name}, of {tried:,}", _total(found, what) if tried else None, 0, "")
    yield Target.at_most(
        f"answers that fell back on the grammar's masks, of {tried:,}", _total(found, "fell_back") if tried else None, 0, ""
    )


def _costs(rows: Sequence[Row]) -> Iterator[Target]:
    table, steps, narrow = (_of(rows, part)[0] for part in ("table", "steps", "narrow"))
    yield Target.at_most("Tekken's table, processor time", table["seconds"], TABLE_SECONDS, "s")
    yield Target.at_most("Tekken's table, size", table["megabytes"], TABLE_MEGABYTES, "MB")
    yield Target.at_most("a cached row and its AND, p99", steps["cached_row_p99_us"], CACHED_ROW_US, "µs")
    yield Target.at_most("a cold row and its AND, p99", steps["cold_row_p99_us"], COLD_ROW_US, "µs")
    yield Target.at_most("dead ends left out of a narrow mask, median", narrow["p50_ms"], NARROW_MS, "ms")


def _of(rows: Sequence[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def _total(rows: Sequence[Row], name: str) -> int:
    return sum(row[name] for row in rows)


def _none_wrong(name: str, rows: Sequence[Row]) -> Target:
    tried = _total(rows, "tried")
    return Target.at_most(f"{name}, of {tried:,}", _total(rows, "wrong") if tried else None, 0, "")
