"""What engines took and said, as rows, lines of tables and promises."""

from __future__ import annotations

from itertools import product

from deployments.reporting.report import BenchReport
from load_tests.lookahead.arms import APPX, CDLH, CDSL
from load_tests.lookahead.figures import GREEDY
from load_tests.lookahead.near_ties import Compared
from load_tests.lookahead.served.engines import FEW_BLOCKS, PLAIN, UNCACHED
from load_tests.lookahead.served.figures import (
    ALONE,
    MANY,
    MOST_AT_ONCE,
    TEXT_HEADINGS,
    row,
    served_rows,
    targets,
    text_lines,
    time_headings,
    time_lines,
)
from load_tests.lookahead.served.turns import BEHIND_EXAMPLES, BY_THEMSELVES, Served, Way
from load_tests.reporting.pages import pages

SECONDS = {GREEDY: 1.0, CDLH.name: 8.0, APPX.name: 6.0, CDSL.name: 4.0}
EQUAL = Compared(2, 2, 0)


def served(method: str, at_once: int, engine: str = PLAIN, prompts: str = BY_THEMSELVES) -> Served:
    counted = {"forwards": 2, "target_steps": 2, "preemptions": int(engine == FEW_BLOCKS), "cached": 0 if engine == UNCACHED else 32}
    return Served(Way(engine, prompts, at_once), method, [(1, 2, 3), (4,)], SECONDS[method] / at_once, counted)


def rows() -> list[dict[str, object]]:
    ways = [(*way, PLAIN, BY_THEMSELVES) for way in product(SECONDS, (ALONE, MANY, MOST_AT_ONCE))]
    others = [(CDSL.name, ALONE, engine, BEHIND_EXAMPLES) for engine in (PLAIN, UNCACHED, FEW_BLOCKS)]
    return [row(served(*way), EQUAL) for way in (*ways, *others)]


def test_a_row_is_for_a_token() -> None:
    told = row(served(CDLH.name, 1), EQUAL)
    assert (told["ms"], told["forwards"], told["preemptions"]) == (2000, 0.5, 0)
    assert served_rows([told, {"method": GREEDY}]) == [told]


def test_times_stand_beside_greedys_and_those_of_cdlh() -> None:
    lines = time_lines(rows())
    assert all(len(line) == len(time_headings()) for line in lines)
    assert lines[-1][:4] == [CDSL.name, "1000.00", "4.00 × the time", "2.00 × as fast"]


def test_texts_are_counted_by_engine_and_answers_at_once() -> None:
    lines = text_lines(rows())
    assert all(len(line) == len(TEXT_HEADINGS) for line in lines)
    assert lines[0] == [PLAIN, BY_THEMSELVES, "1", "8", "8", "0", "0", "0", "128"]
    assert lines[-1] == [FEW_BLOCKS, BEHIND_EXAMPLES, "1", "2", "2", "0", "0", "1", "32"]


def test_promises_hold_for_as_long_as_every_text_is_that_of_plain_loops() -> None:
    assert all(target.holds for target in targets(rows()))
    without = {
        "preemptions": "preemptions, in the engine of few blocks",
        "cached": "tokens of prompts behind examples that the prefix cache had",
    }
    for name, missed in without.items():
        assert [target.name for target in targets([{**one, name: 0} for one in rows()]) if not target.holds] == [missed]
    wrong = row(served(CDSL.name, 32, FEW_BLOCKS), Compared(2, 1, 0))
    assert [target.name for target in targets([*rows(), wrong]) if not target.holds] == [
        "texts of engines that are not those of plain loops"
    ]


def test_the_page_has_both_pairs_and_all_engines() -> None:
    figures = {"hard": 80.0, "soft": 90.0, "draft_calls": 1.5, "target_calls": 2.0, "p": 2.5, "nats": 0.4, "tokens": 11.0}
    decoded: list[dict[str, object]] = [{"method": method, **figures} for method in SECONDS]
    decoded[-1] |= {"s1": 5, "s2": 0, "s3": 1, "s4": 0, "equal": 2, "compared": 2}
    report = BenchReport.here("python -m load_tests.lookahead", [], [], [*decoded, *rows()])
    page = pages({"lookahead": report}, {}, ["lookahead"])["lookahead.md"]
    assert f"| {CDSL.name} | 80.0 | 90.0 | 1.50 | 2.00 | 2.50 | 0.40 | 5 · 0 · 1 · 0 | 2 of 2 |" in page
    assert "| ours | 0.9 million | 0.1 million | 80.0 | 80.0 | 80.0 | 80.0 | 1.50 + 2.00 |" in page
    assert "| commongen | OPT-13B | OPT-125M | 60.8 | 93.1 | 81.7 | 79.8 | 0.00 + 8.62 | 7.65 + 1.00 | 8.79 + 0.88 | 5.40 | 5.54 |" in page
    assert f"| {CDSL.name} | 1000.00 | 4.00 × the time | 2.00 × as fast |" in page
    assert f"| {FEW_BLOCKS} | {BEHIND_EXAMPLES} | 1 | 2 | 2 | 0 | 0 | 1 | 32 |" in page
