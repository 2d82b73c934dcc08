"""From bytes to figures to a page."""

from __future__ import annotations

import json
from io import BytesIO
from itertools import pairwise
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from load_tests.front_door.clients.connection import Reply
from load_tests.front_door.clients.events import Part
from load_tests.load.counted import Counted, read_page
from load_tests.load.driving import Asked, read
from load_tests.load.report import Ran, charts, compared, page, row
from load_tests.load.scenarios import SCENARIOS

HEAD: dict[str, Any] = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
PAGE = """
# TYPE maskcast_grammar_events counter
maskcast_grammar_events_total{component="compiler",event="compiled"} %d
maskcast_grammar_events_total{component="model",event="memory_hits"} 7
# TYPE maskcast_forced_tokens counter
maskcast_forced_tokens_total{deployment="a"} %d
maskcast_forced_tokens_total{deployment="b"} 1
# TYPE vllm_generation_tokens counter
vllm_generation_tokens_total{model_name="m"} %d
"""


def said(delta: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"delta": delta}]}


def reply(*told: dict[str, Any] | str, status: int = 200) -> Reply:
    """One part a tenth of a second, beginning at 10.1."""
    texts = (each if isinstance(each, str) else json.dumps(each) for each in told)
    return Reply(status, [Part(10.1 + number / 10, f"data: {text}\n\n".encode()) for number, text in enumerate(texts)])


def asked(of: Reply) -> Asked:
    return read("search", 2.0, 0.01, 10.0, of)


@pytest.mark.parametrize("delta", [{"content": "a"}, {"tool_calls": [{"index": 0}]}])
def test_a_stream_is_timed_from_its_first_text_or_call_to_its_end(delta: dict[str, Any]) -> None:
    usage = {"choices": [], "usage": {"completion_tokens": 3}}
    found = asked(reply(HEAD, said(delta), said(delta), usage, "[DONE]"))
    assert (found.is_answered, found.tokens) == (True, 3)
    assert found.first_s == pytest.approx(0.2)
    assert found.token_s == pytest.approx((0.5 - 0.2) / 2)


def test_a_stream_without_its_end_is_no_answer() -> None:
    assert asked(reply(HEAD, said({"content": "a"}))).status == 0


def test_an_error_event_is_a_failure_of_the_service() -> None:
    found = asked(reply(HEAD, {"error": {"code": "engine_dead"}}, "[DONE]"))
    assert (found.status, found.failed, found.is_answered) == (200, True, False)


def test_what_has_no_answer_is_counted_as_lost_and_nothing_else() -> None:
    some = [asked(reply(HEAD, "[DONE]")), asked(Reply()), asked(reply("{}", status=400)), asked(reply("{}", status=503))]
    figures = row(Ran(SCENARIOS[0], 10.0, some, Counted({}, None, None)))
    assert [figures[name] for name in ("asked", "answered", "refused", "busy", "failed", "lost")] == [4, 1, 1, 1, 0, 1]


def test_counters_are_what_has_been_added_to_all_processes_together() -> None:
    before, after = (read_page(PAGE % numbers) for numbers in ((1, 2, 10), (4, 7, 30)))
    counted = Counted.between(before, after)
    assert (counted.tiers["compiled"], counted.tiers["engine's memory"]) == (3, 0)
    assert counted.forced == 5 / 20
    assert counted.batch is None


def test_a_page_stands_alone_and_has_all_scenarios() -> None:
    some = [asked(reply(HEAD, said({"content": "a"}), "[DONE]"))]
    text = page([Ran(each, 10.0, some, Counted({"Redis": 1}, 0.5, 1.0)) for each in SCENARIOS], "command <with marks>")
    assert text.count("<h2>") == len(SCENARIOS)
    assert text.count("data:image/png;base64,") == len(SCENARIOS) + 1, "of each, and of all beside each other"
    assert "&lt;with marks&gt;" in text
    assert "http" not in text.replace("data:image", "").split("base64,")[0]


def test_forced_shares_and_batches_stand_beside_each_other() -> None:
    runs = [Ran(SCENARIOS[0], 10.0, [], Counted({}, 0.25, 3.5)), Ran(SCENARIOS[1], 10.0, [], Counted({}, None, None))]
    forced, batch = compared(runs).axes
    assert widths(forced) == [25.0, 0.0]
    assert widths(batch) == [3.5, 0.0]
    assert [label.get_text() for label in forced.get_yticklabels()] == [each.name for each in SCENARIOS[:2]]


def widths(axes: Axes) -> list[float]:
    return [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)]


@pytest.mark.parametrize("token_s", [0.00012, 0.0034, 0.061, 1.7])
def test_labels_of_an_axis_do_not_run_into_each_other(token_s: float) -> None:
    """Of times of any length; the last answer took three times as long as the first."""
    answers = [Asked("search", 0.0, 0.0, 200, 2 * token_s, token_s * (2 + each / 5), 2) for each in range(1, 31)]
    figure = charts(Ran(SCENARIOS[0], 10.0, answers, Counted({"Redis": 1}, None, None)))
    figure.savefig(BytesIO(), format="png")  # places everything
    for axes in figure.axes:
        left, right = axes.bbox.x0 - 1, axes.bbox.x1 + 1
        boxes = sorted((label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()), key=lambda each: each.x0)
        shown = [each for each in boxes if left <= (each.x0 + each.x1) / 2 <= right]
        assert len(shown) > 1
        assert all(one.x1 < next_.x0 for one, next_ in pairwise(shown)), axes.get_title(loc="left")
