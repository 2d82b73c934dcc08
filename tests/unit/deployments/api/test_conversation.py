"""A chat request has messages, each with a role that somebody knows."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.api.conversation import ROLES, check_messages
from deployments.errors import ApiError


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        (None, "messages"),
        ([], "messages"),
        ("hello", "messages"),
        (["hello"], "messages[0]"),
        ([{"role": "user"}, {"content": "hello"}], "messages[1].role"),
        ([{"role": "narrator", "content": "hello"}], "messages[0].role"),
        ([{"role": ["user"], "content": "hello"}], "messages[0].role"),
    ],
)
def test_a_message_without_a_known_role_is_a_400_that_names_it(messages: Any, param: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_messages(messages)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_the_roles_of_openai_are_known() -> None:
    check_messages([{"role": role, "content": "hello"} for role in ROLES])
