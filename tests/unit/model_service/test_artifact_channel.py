"""The engine core gets what its replica offers, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from model_service.artifact_channel import ArtifactServer, Payload, fetch
from model_service.errors import ChannelError


@pytest.fixture
async def server() -> AsyncIterator[ArtifactServer]:
    server = ArtifactServer(f"maskcast-test-{uuid4().hex}")
    await server.start()
    yield server
    await server.close()


async def test_an_offered_payload_arrives_whole(server: ArtifactServer) -> None:
    payload = Payload("xgrammar", bytes(range(256)) * 5000)
    with server.offered("k1", lambda: payload):
        assert await asyncio.to_thread(fetch, server.name, "k1") == payload


async def test_a_payload_is_offered_until_its_last_user_leaves(server: ArtifactServer) -> None:
    def make() -> Payload:
        return Payload("llguidance", b"x")

    with server.offered("k", make):
        with server.offered("k", make):
            pass
        assert (await asyncio.to_thread(fetch, server.name, "k")).data == b"x"
    with pytest.raises(ChannelError, match="no artifact"):
        await asyncio.to_thread(fetch, server.name, "k")


async def test_a_replica_that_is_gone_is_an_error_of_ours(server: ArtifactServer) -> None:
    await server.close()
    with pytest.raises(ChannelError, match="did not answer"):
        await asyncio.to_thread(fetch, server.name, "k")


async def test_a_peer_that_says_nothing_useful_harms_nobody(server: ArtifactServer) -> None:
    reader, writer = await asyncio.open_unix_connection(f"\0{server.name}")
    writer.write(b"x" * 200_000)
    writer.close()
    with server.offered("k", lambda: Payload("xgrammar", b"y")):
        assert (await asyncio.to_thread(fetch, server.name, "k")).data == b"y"
    del reader
