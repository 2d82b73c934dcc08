"""Whoever is at the other end of a socket is known by what the kernel says of it."""

from __future__ import annotations

import asyncio
import os
import socket
from uuid import uuid4

import pytest

from model_service.artifact_channel import ArtifactServer, Payload, fetch
from model_service.errors import ChannelError
from model_service.wire import is_same_user

ANOTHER = os.getuid() + 1
"""Whom this process's user is not, so that no test has to become somebody else."""


def test_a_process_of_this_user_is_ours() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert is_same_user(one)
        assert is_same_user(other)


async def fetched(server: ArtifactServer, user: int | None = None) -> Payload:
    await server.start()
    try:
        with server.offered("key", lambda: Payload("xgrammar", b"tables")):
            return await asyncio.to_thread(fetch, server.name, "key", user=user)
    finally:
        await server.close()


async def test_an_artifact_is_taken_from_this_user() -> None:
    assert await fetched(ArtifactServer(new_name())) == Payload("xgrammar", b"tables")


async def test_an_artifact_is_not_taken_from_another_user() -> None:
    with pytest.raises(ChannelError, match="another user's"):
        await fetched(ArtifactServer(new_name()), ANOTHER)


async def test_an_artifact_is_not_given_to_another_user() -> None:
    with pytest.raises(ChannelError):
        await fetched(ArtifactServer(new_name(), ANOTHER))


def new_name() -> str:
    return f"maskcast-test-{uuid4().hex}"
