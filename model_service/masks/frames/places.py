"""Where the masks of a frame belong among the logits of a worker's batch, which has its requests in an order of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.intp]
_ABSENT = -1


def places(request_ids: Sequence[str], counts: Sequence[int], row_of: Mapping[str, int], starts: Places | None, n: int) -> Places:
    """For each of `n` rows of logits the number of its mask, -1 where it has none.

    Masks stand in the order of the requests, `counts` each; `row_of` tells a request's row in the batch, `starts` the first of the logits
    of each of these rows, None: each has one. Whoever is not in the batch has no place. No loop in Python here runs over requests.
    """
    rows = np.fromiter(map(row_of.get, request_ids, repeat(_ABSENT)), dtype=np.intp, count=len(request_ids))
    found = np.full(n, _ABSENT, dtype=np.intp)
    if starts is None:
        present = rows >= 0
        found[rows[present]] = np.flatnonzero(present)
        return found
    lengths = np.fromiter(counts, dtype=np.intp, count=len(counts))
    first_mask = np.cumsum(lengths) - lengths
    present = rows >= 0
    taken = lengths[present]
    within = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
    found[np.repeat(starts[rows[present]], taken) + within] = np.repeat(first_mask[present], taken) + within
    return found


def first_logits(row_of: Mapping[str, int], drafts: Mapping[str, Sequence[int]]) -> Places | None:
    """For each row of the batch, the first of its logits, where each request has one row of them and one more for each of its drafts; None
    where nobody has drafts."""
    if not drafts:
        return None
    counts = np.ones(len(row_of) + 1, dtype=np.intp)
    rows = np.fromiter(map(row_of.get, drafts, repeat(len(row_of))), dtype=np.intp, count=len(drafts))
    counts[rows] += np.fromiter(map(len, drafts.values()), dtype=np.intp, count=len(drafts))
    return np.cumsum(counts) - counts
