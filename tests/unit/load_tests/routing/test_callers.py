from __future__ import annotations

from load_tests.routing.callers import Call, back_s


def test_traffic_is_back_when_all_bodies_are_answered_that_were_sent_after_the_event() -> None:
    calls = [Call(0, 9.0, 11.0, 200), Call(1, 10.0, 12.0, 200), Call(0, 10.5, 14.0, 200), Call(1, 13.0, 17.0, 200)]
    assert back_s(calls, bodies=2, since=10.0) == 4.0


def test_traffic_is_not_back_while_a_body_is_only_refused() -> None:
    calls = [Call(0, 11.0, 12.0, 200), Call(1, 11.0, 12.0, 503, "model_busy")]
    assert back_s(calls, bodies=2, since=10.0) is None


def test_a_call_fails_cleanly_only_with_an_error_of_the_services_own() -> None:
    assert Call(0, 0.0, 1.0, 200).is_clean
    assert Call(0, 0.0, 1.0, 503, "model_busy").is_clean
    assert not Call(0, 0.0, 1.0, 502).is_clean
    assert not Call(0, 0.0, 1.0, 0, "ReadTimeout").is_clean
