"""Published figures beside ours, as rows, cells and promises."""

from __future__ import annotations

import re

import pytest

from deployments.reporting.report import Row
from grammar_service.automata.byte_dfa import of_regex
from load_tests.canonical.published.index_race import REGEX, SCHEMA, index_targets
from load_tests.canonical.published.pair_search import CALLS, regex_of
from load_tests.canonical.published.row import figure
from load_tests.canonical.published.rows import published_targets
from load_tests.canonical.published.tables import INDEX_PART, cells, index_cells


def raced(kind: str, ours: float | None, theirs: float, served: float | None = None) -> Row:
    row = {"part": INDEX_PART, "kind": kind, "case": "one", "ours": ours, "outlines_core": theirs, "states": 3, "edges": 1200}
    return row if served is None else {**row, "served": served}


def test_ratios_are_of_those_that_both_take() -> None:
    rows = [raced(SCHEMA, 0.1, 1.0, 0.5), raced(SCHEMA, None, 9.0, 0.9), raced(REGEX, 1.0, 1.0), raced(REGEX, 0.01, 1.0)]
    schemas, served, regexes = index_targets(rows)
    assert schemas.value == pytest.approx(10)
    assert "1 of 2" in schemas.name
    assert served.value == pytest.approx((2 * 10) ** 0.5)
    assert not served.holds
    assert regexes.value == pytest.approx(10)


def test_without_these_rows_nothing_is_promised() -> None:
    assert [*published_targets([{"part": "theorem"}])] == []


def test_a_figure_stands_beside_the_published_one() -> None:
    assert cells(figure("a mask", "tekken", 0.00153, 0.0000123456, "s")) == ["a mask", "tekken", "0.00153 s", "1.235e-05 s"]
    assert cells(figure("most", "tekken", 12_260, None)) == ["most", "tekken", "12,260", ""]


def test_a_language_that_ours_refuses_has_a_reason_for_its_time() -> None:
    refused = {**raced(SCHEMA, None, 9.0, 0.9), "refused": "too large"}
    assert index_cells(refused) == ["one", "", "", "too large", "9.000", "", "0.900"]
    assert index_cells(raced(REGEX, 0.1, 1.0)) == ["one", "3", "1,200", "0.100", "1.000", "10.0 ×", ""]


@pytest.mark.parametrize("name", CALLS)
def test_function_calls_are_regexes_of_json(name: str) -> None:
    regex = regex_of(name, CALLS[name])
    assert of_regex(regex).accepting.any()
    re.compile(regex)


def test_a_function_call_is_its_name_and_arguments() -> None:
    language = of_regex(regex_of("get_stock_price", CALLS["get_stock_price"]))
    assert b'{"name": "get_stock_price", "arguments": {"symbol": "IBM"}}' in language
    assert b'{"name": "get_stock_price", "arguments": {"symbol": "ibm"}}' not in language
