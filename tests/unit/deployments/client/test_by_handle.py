from __future__ import annotations

import pytest
from ray.exceptions import RayTaskError
from ray.serve.exceptions import BackPressureError

from deployments.client.by_handle import FAULTS, api_error
from deployments.errors import AnswerLost, ApiError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AnswerLost("gone"), "ingress_lost"),
        (RayTaskError("send_stream", "", AnswerLost("gone")), "ingress_lost"),
        (BackPressureError(num_queued_requests=2, max_queued_requests=2), "ingress_busy"),
        (RayTaskError("generate", "", ApiError(400, "no", code="wrong")), "wrong"),
    ],
)
def test_faults_of_calls_are_told_as_over_http(error: Exception, code: str) -> None:
    assert isinstance(error, FAULTS)
    told = api_error(error)
    assert isinstance(told, ApiError)
    assert told.code == code


def test_what_nobody_has_thought_of_stays_what_it_is() -> None:
    error = RayTaskError("generate", "", ValueError("a fault of ours"))
    assert api_error(error) is error
