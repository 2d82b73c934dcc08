"""What is counted and timed, for a page; needs nothing of what does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deployments.reporting.report import Row
from load_tests.canonical.published import tables as published

Table = tuple[str, Sequence[str], list[list[str]]]
"""Title, headings, lines."""
_ANSWERS = ("tried", "ended", "tokens", "drawn", "redrawn", "stuck", "fell_back", "not_canonical")
_PRODUCT = ("byte_states", "index_states", "index_edges", "product_states", "product_edges", "product_single")


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Those that have lines."""
    for title, headings, lines in (
        ("Against encoders and enumeration", ("", "of", "tried", "wrong"), [*_checks(rows)]),
        ("Valid instances of the official suite", ("schemas", "served", "lost", "texts", "refused"), [*_suite(rows)]),
        ("Answers under everyday grammars", ("tokenizer", "draws", *map(_words, _ANSWERS)), [*_answers(rows)]),
        ("Different masks in a step", ("", "requests", "the grammar's", "canonical"), [*_step_rows(rows)]),
        ("What it costs", ("", "of", "measured"), [*_costs(rows)]),
        ("Automata", ("", *map(_words, _PRODUCT), "seconds"), [*_products(rows)]),
        ("Beside what is published", published.HEADINGS, [published.cells(row) for row in _of(rows, published.PART)]),
        (
            "Token indexes, beside outlines-core",
            published.INDEX_HEADINGS,
            [published.index_cells(row) for row in _of(rows, published.INDEX_PART)],
        ),
    ):
        if lines:
            yield title, headings, lines


def _checks(rows: Sequence[Row]) -> Iterator[list[str]]:
    for row in _of(rows, "merging"):
        yield [row["algorithm"], "random automata", *_counts(row, ("tried", "wrong"))]
    for row in _of(rows, "pairs"):
        yield [f"pairs: {row['what']}", "tiktoken", *_counts(row, ("tried", "wrong"))]
    for row in _of(rows, "encoder"):
        yield [row["what"], row["tokenizer"], *_counts(row, ("tried", "wrong"))]


def _suite(rows: Sequence[Row]) -> Iterator[list[str]]:
    for row in _of(rows, "suite"):
        names = ("schemas", "served", "lost", "texts", "refused")
        yield [f"left out: {row['left_out']}", "", "", "", ""] if "left_out" in row else _counts(row, names)


def _answers(rows: Sequence[Row]) -> Iterator[list[str]]:
    for row in _of(rows, "answers"):
        yield [row["tokenizer"], row["draws"], *_counts(row, _ANSWERS)]


def _step_rows(rows: Sequence[Row]) -> Iterator[list[str]]:
    for row in _of(rows, "step rows"):
        yield [row["case"], *_counts(row, ("requests", "plain", "canonical"))]


def _costs(rows: Sequence[Row]) -> Iterator[list[str]]:
    for row in _of(rows, "table"):
        yield ["table, made once", row["tokenizer"], f"{row['seconds']:g} s, {row['megabytes']:g} MB"]
    for row in _of(rows, "steps"):
        for name in ("cold_row", "cached_row", "cold_token", "cached_token"):
            measured = f"p50 {row[f'{name}_p50_us']:g} µs, p99 {row[f'{name}_p99_us']:g} µs"
            yield [_words(name), row["tokenizer"], measured]
    for row in _of(rows, "narrow"):
        measured = (
            f"p50 {row['p50_ms']:g} ms, p99 {row['p99_ms']:g} ms; {row['tokens_mean']:g} tokens in the mean of {row['masks']:,} masks"
        )
        yield ["dead ends left out of a narrow mask", row["tokenizer"], measured]
    for row in _of(rows, "forbidden"):
        measured = f"mean {row['mean']:,g}, median {row['median']:,g}, most {row['most']:,}"
        yield ["tokens that may not follow a token", row["tokenizer"], measured]


def _products(rows: Sequence[Row]) -> Iterator[list[str]]:
    for row in _of(rows, "products"):
        yield [row["language"], *_counts(row, _PRODUCT), f"{row['index_seconds'] + row['product_seconds']:.3f}"]


def _of(rows: Sequence[Row], part: str) -> list[Row]:
    return [row for row in rows if row.get("part") == part]


def _counts(row: Row, names: Sequence[str]) -> list[str]:
    return ["" if row.get(name) is None else f"{row[name]:,}" for name in names]


def _words(name: str) -> str:
    return name.replace("_", " ")
