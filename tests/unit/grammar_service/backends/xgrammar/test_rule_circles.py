from __future__ import annotations

import pytest

from grammar_service.backends.xgrammar.runs import in_circles


@pytest.mark.parametrize(
    ("names", "circles"),
    [
        ([{1}, {2}, set()], set()),
        ([{0}], {0}),
        ([{1}, {2}, {1}], {1, 2}),
        ([{1, 2}, {1}, {3}, {2, 4}, set()], {1, 2, 3}),
        ([{0, 1}, {2}, {2}], {0, 1, 2}),
        ([set(), {0}, {1}, {1, 2}], set()),
        ([], set()),
    ],
)
def test_what_is_left_leads_to_itself_or_from_one_circle_to_another(names: list[set[int]], circles: set[int]) -> None:
    assert in_circles(names) == circles
