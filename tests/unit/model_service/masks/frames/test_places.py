"""Masks find their rows of logits, whatever order the worker has its requests in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model_service.masks.frames.places import first_logits, places


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[str], dict[str, list[int]], list[str]]:
    """A worker's requests in its order, the drafts of some of them, and the requests that have masks, in theirs; some are not here."""
    batch = draw(st.permutations([f"r{number}" for number in range(draw(st.integers(1, 6)))]))
    drafted = draw(st.lists(st.sampled_from([*batch, "gone"]), unique=True)) if draw(st.booleans()) else []
    drafts = {request_id: draw(st.lists(st.integers(-1, 9), min_size=1, max_size=3)) for request_id in drafted}
    masked = draw(st.permutations(draw(st.lists(st.sampled_from([*batch, "gone", "lost"]), unique=True))))
    return batch, drafts, masked


@given(batches())
def test_each_mask_goes_to_its_requests_logits(case: tuple[list[str], dict[str, list[int]], list[str]]) -> None:
    batch, drafts, masked = case
    logits = [(request_id, place) for request_id in batch for place in range(1 + len(drafts.get(request_id, ())))]
    masks = [(request_id, place) for request_id in masked for place in range(1 + len(drafts.get(request_id, ())))]
    counts = [1 + len(drafts.get(request_id, ())) for request_id in masked]
    rows = {request_id: row for row, request_id in enumerate(batch)}
    expected = [masks.index(row) if row in masks else -1 for row in logits]
    assert places(masked, counts, rows, first_logits(rows, drafts), len(logits)).tolist() == expected
