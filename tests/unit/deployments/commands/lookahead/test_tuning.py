"""Of thresholds that were tried, the rule takes one; it is written as settings, and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from deployments.commands.lookahead.cases import Case, TuningFailed, read_cases, tried
from deployments.commands.lookahead.curves import draw
from deployments.commands.lookahead.grid import GRID, Outcome, Thresholds, Tried, as_settings, chosen, table
from deployments.config import parse_settings

CASES = [Case("one", {"type": "length", "least": 3}), Case("two", {"type": "length", "least": 5})]


def answered(case: Case, thresholds: dict[str, Any]) -> Outcome:
    """The more r_t asks for, the better and the slower; a_t costs a little; b is what earns too little."""
    earned = thresholds["r_t"] - 0.2 * thresholds["b"] - (0 if case.prompt == "one" else 0.5)
    return Outcome(earned, 10, int(100 * thresholds["r_t"] + 10 * thresholds["a_t"]), 10 + thresholds["b"])


def test_every_setting_is_tried_on_every_case_and_the_best_of_the_ten_fastest_is_taken() -> None:
    seen: list[tuple[str, int, int]] = []
    found = tried(answered, CASES, GRID, 0.3, 0.1, 4, lambda *now: seen.append(now))
    assert [one.thresholds for one in found] == list(GRID)
    assert [done for _, done, _ in seen] == list(range(len(GRID) + 1))
    fastest = sorted(found, key=lambda one: one.p)[:10]
    taken = chosen(found)
    assert taken in fastest
    assert (taken.satisfied, taken.reward) == max((one.satisfied, one.reward) for one in fastest)
    # More is satisfied with others, but they are slower.
    assert max(one.reward for one in found) > taken.reward
    assert taken.p == pytest.approx(0.1 * taken.draft_calls + taken.target_calls)
    assert table(found, taken).row_count == len(GRID)


def test_of_equals_the_one_with_more_reward_and_then_the_faster_is_taken() -> None:
    def of(r_t: float, reward: float, p: float) -> Tried:
        return Tried(Thresholds(0.6, r_t, 0), 0.5, reward, 0, 0, p)

    assert chosen([of(0.1, 0.6, 1), of(0.2, 0.7, 3), of(0.3, 0.7, 2)]).thresholds.r_t == 0.3


def test_what_is_taken_is_settings() -> None:
    settings = parse_settings(yaml.safe_load(as_settings(Thresholds(0.9, 0.5, 2))))
    assert settings.model.lookahead
    assert settings.model.lookahead_defaults.model_dump() == {"a_t": 0.9, "r_t": 0.5, "b": 2}


def test_curves_are_a_picture(tmp_path: Path) -> None:
    found = tried(answered, CASES, GRID, 0.3, 0.1, 4, lambda *_: None)
    draw(found, chosen(found), tmp_path / "new" / "curves.png")
    assert (tmp_path / "new" / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("text", ["", '{"prompt": "a"}', "prompt: a", '{"prompt": "a", "reward": {}, "d": 3}'])
def test_a_file_of_something_else_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(text)
    with pytest.raises(TuningFailed, match=r"cases\.jsonl"):
        read_cases(file)


def test_cases_are_lines(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text('{"prompt": "a", "reward": {"type": "length"}}\n\n{"prompt": [{"role": "user", "content": "b"}], "reward": {}}\n')
    assert [case.prompt for case in read_cases(file)] == ["a", [{"role": "user", "content": "b"}]]
