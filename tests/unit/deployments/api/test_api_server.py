"""What an operator is told of who may use the service."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.api.api_server import api_keys
from deployments.config import parse_settings


@pytest.mark.parametrize(
    ("http", "is_warned"),
    [
        ({"host": "0.0.0.0"}, True),
        ({"host": "::"}, True),
        ({"host": "127.0.0.1"}, False),
        ({"host": "0.0.0.0", "api_keys": ["a-key-of-more-than-sixteen-letters"]}, False),
    ],
)
def test_a_service_that_others_reach_without_keys_says_so(http: dict[str, Any], is_warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    api_keys(parse_settings({"http": http}))
    assert ("there are no API keys" in caplog.text) is is_warned
