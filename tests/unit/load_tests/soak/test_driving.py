"""Clients that leave do so in the middle of an answer; what comes of the others is counted."""

from __future__ import annotations

import asyncio
import json

from load_tests.soak.driving import ANSWERED, CLIENTS, LEFT, Driving
from load_tests.soak.traffic import Asked, Kind

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDED = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
TURNS = 50
"""Of the event loop, before the first of an answer: whoever does not wait for it has gone."""


class Server:
    """Streams, without an end where that is asked for; has `begun` so many answers."""

    def __init__(self) -> None:
        self.begun = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.read(1 << 16):
            self.begun += 1
            for _ in range(TURNS):
                await asyncio.sleep(0)
            writer.write(HEAD + b"9\r\ndata: 1\n\n\r\n")
            if json.loads(head.partition(b"\r\n\r\n")[2])["endless"]:
                await reader.read(1)
                break
            writer.write(ENDED)
        writer.close()


async def test_who_leaves_has_had_the_first_of_the_answer_also_on_a_connection_that_was_used_before() -> None:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    async with listening:
        host, port = listening.sockets[0].getsockname()
        driving = Driving(host, port)
        rounds = [kind for kind in (Kind.STREAM, Kind.LEFT, Kind.STREAM, Kind.LEFT) for _ in range(CLIENTS)]
        await driving.drive([Asked(kind, {"endless": kind is Kind.LEFT}) for kind in rounds], per_second=1000)
    assert driving.ended == {ANSWERED: 2 * CLIENTS, LEFT: 2 * CLIENTS}
    assert server.begun == 4 * CLIENTS
