"""Whoever is at the other end of a socket is known by what the kernel says of it."""

from __future__ import annotations

import os
import socket
from uuid import uuid4

import pytest

from model_service.artifact_channel import fetch
from model_service.errors import ChannelError
from model_service.peer import is_same_user

NOBODY = 65534


def test_a_process_of_this_user_is_ours() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert is_same_user(one)
        assert is_same_user(other)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can listen as another user")
def test_an_artifact_is_not_taken_from_another_user() -> None:
    name = f"maskcast-test-{uuid4().hex}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        # Who listens is kept by the kernel as of now.
        os.seteuid(NOBODY)
        try:
            listener.listen()
        finally:
            os.seteuid(0)
        with pytest.raises(ChannelError, match="another user's"):
            fetch(name, "key")
