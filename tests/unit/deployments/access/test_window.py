"""The sliding window: never more than the limit in any sixty seconds, and all of it again a minute later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.access.window import BUCKET_S, WINDOW_S, Used, Verdict, bucket_of, counted, decide, share, standing
from deployments.config import KeyLimits

EVENTS = st.lists(st.tuples(st.floats(0, 20), st.integers(0, 40)), max_size=80)
"""Seconds since the one before, and tokens."""


def played(limits: KeyLimits, events: list[tuple[float, int]]) -> list[tuple[float, int, Verdict]]:
    """When each came, its tokens, and what was decided."""
    buckets: dict[int, Used] = {}
    now, found = 1_000.0, []
    for gap, cost in events:
        now += gap
        verdict = decide(limits, 0, buckets, cost, now)
        if verdict is Verdict.ADMITTED:
            buckets[bucket_of(now)] = buckets.get(bucket_of(now), Used()) + Used(1, cost)
        found.append((now, cost, verdict))
    return found


@given(EVENTS, st.integers(1, 10), st.integers(1, 100))
def test_no_sixty_seconds_hold_more_than_the_limits(events: list[tuple[float, int]], requests: int, tokens: int) -> None:
    limits = KeyLimits(requests_per_minute=requests, tokens_per_minute=tokens)
    went = [(at, cost) for at, cost, verdict in played(limits, events) if verdict is Verdict.ADMITTED]
    for end, _ in went:
        inside = [cost for at, cost in went if end - WINDOW_S < at <= end]
        assert len(inside) <= requests
        assert sum(inside) <= tokens


@given(EVENTS, st.integers(1, 10), st.integers(1, 100))
def test_only_what_would_be_over_is_refused(events: list[tuple[float, int]], requests: int, tokens: int) -> None:
    """Over the limit of the last minute and one bucket."""
    limits = KeyLimits(requests_per_minute=requests, tokens_per_minute=tokens)
    found = played(limits, events)
    for place, (end, cost, verdict) in enumerate(found):
        earlier = [cost for at, cost, before in found[:place] if before is Verdict.ADMITTED and at > end - WINDOW_S - BUCKET_S]
        if verdict is Verdict.REQUESTS:
            assert len(earlier) + 1 > requests
        if verdict is Verdict.TOKENS:
            assert sum(earlier) + cost > tokens


@given(EVENTS, st.integers(1, 5), st.integers(40, 100))
def test_who_comes_again_when_he_is_told_fits(events: list[tuple[float, int]], requests: int, tokens: int) -> None:
    limits = KeyLimits(requests_per_minute=requests, tokens_per_minute=tokens)
    buckets: dict[int, Used] = {}
    now = 1_000.0
    for gap, cost in events:
        now += gap
        verdict = decide(limits, 0, buckets, cost, now)
        while verdict is not Verdict.ADMITTED:
            wait_s = standing(verdict, limits, buckets, cost, now).retry_after_s
            assert 0 < wait_s <= WINDOW_S + BUCKET_S
            now += wait_s + 1e-6
            again = decide(limits, 0, buckets, cost, now)
            assert again is not verdict  # that limit is reached no more; the other may be
            verdict = again
        buckets[bucket_of(now)] = buckets.get(bucket_of(now), Used()) + Used(1, cost)


def test_all_is_there_again_after_a_minute_and_a_bucket() -> None:
    limits = KeyLimits(requests_per_minute=2, tokens_per_minute=10)
    buckets = {bucket_of(0): Used(1, 4), bucket_of(7): Used(1, 3)}
    found = standing(Verdict.ADMITTED, limits, buckets, 3, 7.0)
    assert (found.remaining_requests, found.remaining_tokens) == (0, 3)
    assert found.reset_requests_s == found.reset_tokens_s == 63.0
    assert counted(buckets, 69.99)[1] == Used(1, 3)
    assert counted(buckets, 70.0) == {}


def test_what_was_used_before_the_clock_was_set_back_does_not_count_until_it_is_there_again() -> None:
    limits = KeyLimits(requests_per_minute=2)
    buckets = {bucket_of(7200.0): Used(2, 0)}
    assert decide(limits, 0, buckets, 0, 3600.0) is Verdict.ADMITTED
    assert standing(Verdict.ADMITTED, limits, buckets, 0, 3600.0).reset_requests_s == 0
    assert decide(limits, 0, buckets, 0, 7200.0 - WINDOW_S) is Verdict.REQUESTS  # another ingress's clock may be ahead


def test_tokens_that_were_given_back_make_no_more_room_than_there_is() -> None:
    limits = KeyLimits(tokens_per_minute=10)
    assert standing(Verdict.ADMITTED, limits, {0: Used(1, -5)}, 0, 0.0).remaining_tokens == 10
    assert decide(limits, 0, {0: Used(1, -5)}, 11, 0.0) is Verdict.TOKENS


def test_so_many_at_a_time() -> None:
    limits = KeyLimits(concurrent_requests=2)
    assert decide(limits, 1, {}, 0, 0.0) is Verdict.ADMITTED
    assert decide(limits, 2, {}, 0, 0.0) is Verdict.CONCURRENT
    assert standing(Verdict.CONCURRENT, limits, {}, 0, 0.0).retry_after_s == 1


def test_without_limits_all_goes() -> None:
    assert decide(KeyLimits(), 10**6, {0: Used(10**6, 10**9)}, 10**9, 0.0) is Verdict.ADMITTED


@pytest.mark.parametrize("ingresses", [1, 2, 3, 7, 16])
def test_ingresses_that_know_nothing_of_each_other_grant_at_most_twice_the_limits(ingresses: int) -> None:
    limits = KeyLimits(concurrent_requests=40, requests_per_minute=100, tokens_per_minute=None)
    part = share(limits, ingresses)
    assert part.concurrent_requests is not None
    assert part.requests_per_minute is not None
    assert 40 <= part.concurrent_requests * ingresses <= 80
    assert 100 <= part.requests_per_minute * ingresses <= 200
    assert part.tokens_per_minute is None
