"""From what limited clients saw to how far their limits were kept. What a client sees begins later and ends sooner than what the service
counts, so that nothing is taken for too much that was not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from deployments.reporting.quantiles import ratio
from deployments.reporting.report import Row
from load_tests.tenants.limited import Limited, Visit

MINUTE_S = 60.0


def limit_row(scenario: str, limited: Limited, visits: Sequence[Visit], killed_s: float) -> Row:
    """`used` is the most at a time, or in a minute; `used_before` without what was asked for after `killed_s`."""
    used = _used(limited.what, visits)
    return {
        "scenario": scenario,
        "limit": limited.what,
        "allowed": limited.most,
        "used_before": _used(limited.what, [one for one in visits if one.last_s < killed_s]),
        "used": used,
        "used_by_limit": ratio(used, limited.most),
        "answered_after": sum(_is_answered(one) and one.sent_s > killed_s for one in visits),
        "refused": sum(one.refused for one in visits),
        "failed": sum(one.failed for one in visits),
    }


def most_at_once(spans: Iterable[tuple[float, float]]) -> int:
    """Of spans from a time to a later one; where one ends as another begins, they do not overlap."""
    steps = sorted(step for begun, ended in spans for step in ((begun, 1), (ended, -1)))
    return max(accumulate(change for _, change in steps), default=0)


def most_in_a_minute(amounts: Iterable[tuple[float, int]]) -> int:
    """The largest sum of what came within sixty seconds; each with its time."""
    most, left, within = 0, 0, list[tuple[float, int]]()
    for at_s, amount in sorted(amounts):
        within.append((at_s, amount))
        while at_s - within[left][0] >= MINUTE_S:
            left += 1
        most = max(most, sum(each for _, each in within[left:]))
    return most


def _used(what: str, visits: Sequence[Visit]) -> int:
    answered = [one for one in visits if _is_answered(one)]
    if what == "concurrent_requests":
        return most_at_once((one.first_s, one.last_s) for one in answered)
    return most_in_a_minute((one.first_s, one.tokens if what == "tokens_per_minute" else 1) for one in answered)


def _is_answered(visit: Visit) -> bool:
    return not visit.refused and not visit.failed
