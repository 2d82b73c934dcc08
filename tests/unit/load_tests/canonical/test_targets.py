"""What is promised of checks and costs, and the tables that show them."""

from __future__ import annotations

from deployments.reporting.report import Row
from load_tests.canonical.tables import tables
from load_tests.canonical.targets import check_targets

COUNTED = {"tokens": 9, "drawn": 9, "redrawn": 0, "stuck": 0, "not_canonical": 0}
ROWS: list[Row] = [
    {"part": "theorem", "table": "trained", "encoder": "lowest rank", "letter_with_itself": False, "tried": 5, "wrong": 0},
    {"part": "merging", "algorithm": "DirectMerge", "tried": 5, "wrong": 0},
    {"part": "pairs", "what": "any two tokens", "tried": 100_000, "canonical": 1, "wrong": 0},
    {"part": "encoder", "tokenizer": "tekken", "what": "sequences", "tried": 5, "canonical": 1, "wrong": 0},
    {"part": "suite", "tokenizer": "embedded", "schemas": 3, "served": 2, "lost": 0, "texts": 7, "refused": 1},
    {"part": "answers", "tokenizer": "tekken", "draws": "any token", "tried": 10_000, "ended": 9_000, "fell_back": 2, **COUNTED},
    {"part": "step rows", "tokenizer": "tekken", "case": "a schema", "requests": 32, "plain": 4.5, "canonical": 9.5},
    {"part": "table", "tokenizer": "tekken", "seconds": 1.0, "megabytes": 20.0},
    {
        "part": "steps",
        "tokenizer": "tekken",
        **{f"{name}_{kind}_p{of}_us": 1.5 for name in ("cold", "cached") for kind in ("row", "token") for of in (50, 99)},
    },
    {"part": "narrow", "tokenizer": "tekken", "masks": 1000, "tokens_mean": 12.5, "p50_ms": 0.4, "p99_ms": 2.0},
]


def test_what_is_refused_and_what_falls_back_breaks_a_promise() -> None:
    missed = {target.name: target.value for target in check_targets(ROWS) if not target.holds}
    assert missed == {
        "valid instances of the official suite that canonical grammars refuse, and plain ones do not, of 7": 1,
        "answers that ended": 0.9,
        "answers that fell back on the grammar's masks, of 10,000": 2,
        "dead ends left out of a narrow mask, median": 0.4,
    }


def test_without_the_suite_nothing_is_promised_of_it_and_the_page_says_so() -> None:
    rows = [row if row["part"] != "suite" else {"part": "suite", "left_out": "no folder"} for row in ROWS]
    assert not any("suite" in target.name for target in check_targets(rows))
    assert [["left out: no folder", "", "", "", ""]] in [lines for _, _, lines in tables(rows)]


def test_a_page_shows_what_was_measured() -> None:
    found = {title: lines for title, _, lines in tables(ROWS)}
    assert found["Answers under everyday grammars"] == [["tekken", "any token", "10,000", "9,000", "9", "9", "0", "0", "2", "0"]]
    assert found["Different masks in a step"] == [["a schema", "32", "4.5", "9.5"]]
    assert ["dead ends left out of a narrow mask", "tekken", "p50 0.4 ms, p99 2 ms; 12.5 tokens in the mean of 1,000 masks"] in found[
        "What it costs"
    ]
    assert all(len(line) == len(headings) for _, headings, lines in tables(ROWS) for line in lines)


def test_where_only_published_figures_were_measured_no_check_is_promised() -> None:
    assert check_targets([{"part": "published"}]) == []
