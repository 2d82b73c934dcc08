"""Answers over real sockets: both ends in one event loop."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4
from weakref import ref

import msgspec
import pytest
from ray.serve.handle import DeploymentResponse

from deployments.answers.calls import _follow
from deployments.answers.frames import WINDOW, Hello, Piece, ReplyTo
from deployments.answers.receiver import AnswerReceiver, IncomingAnswer, Item
from deployments.answers.sender import AnswerSender
from deployments.errors import AnswerLost
from model_service.replies import Failure, Head
from model_service.wire import packed

NOBODY = 65534
HERE, ELSEWHERE = "this node", "another node"


@asynccontextmanager
async def both_ends(node: str = HERE) -> AsyncIterator[tuple[AnswerReceiver, AnswerSender]]:
    receiver, sender = AnswerReceiver(HERE, "127.0.0.1"), AnswerSender(node)
    await receiver.start()
    try:
        yield receiver, sender
    finally:
        await sender.close()
        await receiver.close()


async def saying(*items: Item) -> AsyncGenerator[Item, None]:
    for item in items:
        yield item


async def text_of(answer: IncomingAnswer) -> str:
    return "".join([item async for item in answer if isinstance(item, str)])


@pytest.mark.parametrize("node", [HERE, ELSEWHERE], ids=["unix socket", "tcp"])
async def test_what_is_said_arrives_in_its_order(node: str) -> None:
    items: list[Item] = [Head(200, stream=True), "früh", "er"]
    async with both_ends(node) as (receiver, sender):
        with receiver.expect() as answer:
            await sender.send(answer.reply_to, saying(*items))
            arrived = [item async for item in answer]
            assert arrived[0] == items[0]
            assert "".join(map(str, arrived[1:])) == "früher"
            assert answer.is_complete


async def test_a_failure_is_an_item() -> None:
    failure = Failure("engine_dead", "it has ended", None, "replica 1", computing=False)
    async with both_ends() as (receiver, sender):
        with receiver.expect() as answer:
            await sender.send(answer.reply_to, saying(failure))
            assert [item async for item in answer] == [failure]


async def test_many_answers_share_a_connection() -> None:
    async with both_ends() as (receiver, sender):

        async def asked(number: int) -> str:
            with receiver.expect() as answer:
                sending = sender.send(answer.reply_to, saying(*[f"{number}," for _ in range(50)]))
                text, _ = await asyncio.gather(text_of(answer), sending)
                return text

        assert await asyncio.gather(*map(asked, range(64))) == [f"{number}," * 50 for number in range(64)]


async def test_who_does_not_read_holds_up_nobody_but_himself() -> None:
    asked_for = 0

    async def endless() -> AsyncGenerator[Item, None]:
        nonlocal asked_for
        while True:
            asked_for += 1
            yield "x" * 1024

    async with both_ends() as (receiver, sender):
        with receiver.expect() as slow, receiver.expect() as quick:
            flood = asyncio.create_task(sender.send(slow.reply_to, endless()))
            await sender.send(quick.reply_to, saying("y" * WINDOW))
            assert await text_of(quick) == "y" * WINDOW
            assert asked_for <= WINDOW // 1024 + 1
            for _ in range(8):  # reading makes room
                await anext(slow)
            assert WINDOW // 1024 + 1 < asked_for < 20 * WINDOW // 1024
            flood.cancel()
            await asyncio.gather(flood, return_exceptions=True)


async def test_one_item_may_be_longer_than_the_window() -> None:
    long = "ä" * (3 * WINDOW + 5)
    async with both_ends() as (receiver, sender):
        with receiver.expect() as answer:
            sent = asyncio.create_task(sender.send(answer.reply_to, saying(long)))
            assert await text_of(answer) == long
            await sent


async def test_an_event_of_a_stream_comes_whole_however_long_it_is() -> None:
    """Half of one would be taken for another: for the usage that ends an answer, for instance."""
    event = "data: " + "ä" * (3 * WINDOW + 5) + "\n\n"
    async with both_ends() as (receiver, sender):
        with receiver.expect() as answer:
            sent = asyncio.create_task(sender.send(answer.reply_to, saying(Head(200, stream=True), *[event, "data: b\n\n"] * 3)))
            pieces = [item async for item in answer if isinstance(item, str)]
            assert all(piece.startswith("data: ") and piece.endswith("\n\n") for piece in pieces)
            assert "".join(pieces) == (event + "data: b\n\n") * 3
            await sent


async def test_a_caller_that_is_gone_ends_the_answer_while_there_is_nothing_to_say() -> None:
    closed = asyncio.Event()

    async def silent() -> AsyncGenerator[Item, None]:
        try:
            yield Head(200, stream=True)
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with both_ends() as (receiver, sender):
        with receiver.expect() as answer:
            sent = asyncio.create_task(sender.send(answer.reply_to, silent()))
            assert await anext(answer) == Head(200, stream=True)
            await receiver.close()
            with pytest.raises(AnswerLost, match="the caller is gone"):
                await sent
            assert closed.is_set()


async def test_a_cancelled_answer_is_cancelled_and_not_lost() -> None:
    async def silent() -> AsyncGenerator[Item, None]:
        yield Head(200, stream=True)
        await asyncio.Event().wait()

    async with both_ends() as (receiver, sender):
        with receiver.expect() as answer:
            sent = asyncio.create_task(sender.send(answer.reply_to, silent()))
            await anext(answer)
            sent.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sent


async def test_a_lost_connection_fails_the_answers_that_came_by_it_after_all_they_had() -> None:
    async def silent() -> AsyncGenerator[Item, None]:
        yield Head(200, stream=True)
        await asyncio.Event().wait()

    async with both_ends() as (receiver, sender):
        with receiver.expect() as answer, receiver.expect() as other:
            sent = asyncio.create_task(sender.send(answer.reply_to, silent()))
            assert await anext(answer) == Head(200, stream=True)
            await sender.close()
            with pytest.raises(AnswerLost, match="model replica"):
                await anext(answer)
            with pytest.raises(AnswerLost):
                await sent
            await sender.send(other.reply_to, saying("by a new connection"))
            assert await text_of(other) == "by a new connection"


async def test_nobody_listens() -> None:
    async with both_ends() as (receiver, sender):
        with receiver.expect() as answer:
            await receiver.close()
            with pytest.raises(AnswerLost, match="cannot connect"):
                await sender.send(answer.reply_to, saying("x"))


async def test_whoever_does_not_know_the_token_is_shown_out() -> None:
    async with both_ends(ELSEWHERE) as (receiver, sender):
        with receiver.expect() as answer:
            stranger = ReplyTo(replace(answer.reply_to.address, token="guessed"), answer.reply_to.answer)  # a wrong one
            with pytest.raises(AnswerLost):
                await sender.send(stranger, _slowly("forged"))
            answer.fail(TimeoutError())
            with pytest.raises(TimeoutError):
                await anext(answer)


async def _slowly(text: str) -> AsyncGenerator[Item, None]:
    yield text
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "bytes_",
    [b"\xff\xff\xff\xff", packed([Piece(1, "forged")]), packed([Hello("x" * 2000)]), b"GET / HTTP/1.1\r\n\r\n", b"\x01\x00\x00\x00\xc1"],
    ids=["a long frame", "no hello", "a long hello", "http", "no frame"],
)
async def test_bytes_that_are_no_hello_end_the_connection(bytes_: bytes) -> None:
    async with both_ends() as (receiver, _):
        with receiver.expect() as answer:
            address = answer.reply_to.address
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(bytes_)
            assert await reader.read() == b""
            writer.close()


async def test_a_frame_that_is_none_ends_the_connection_of_who_is_known() -> None:
    async with both_ends() as (receiver, _):
        with receiver.expect() as answer:
            address = answer.reply_to.address
            on_node = socket.socket(socket.AF_UNIX)
            on_node.setblocking(False)
            await asyncio.get_running_loop().sock_connect(on_node, f"\0{address.socket}")
            reader, writer = await asyncio.open_unix_connection(sock=on_node)
            writer.write(packed([Hello(address.token)]) + packed([Piece(answer.reply_to.answer, "heard")]))
            assert await anext(answer) == "heard"
            writer.write(packed(msgspec.Raw(b"\xc1")))
            assert await reader.read() == b""
            with pytest.raises(AnswerLost):
                await anext(answer)
            writer.close()


async def test_numbers_of_answers_cannot_be_guessed() -> None:
    async with both_ends() as (receiver, _):
        with receiver.expect() as first, receiver.expect() as second:
            assert abs(first.reply_to.answer - second.reply_to.answer) > 1 << 16


@pytest.fixture
def listener_of_another_user() -> Iterator[str]:
    """The abstract name that it listens at; it is told nothing."""
    name = f"maskcast-answers-{uuid4().hex}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        os.seteuid(NOBODY)  # whoever calls `listen` is told to those who connect
        try:
            listener.listen()
        finally:
            os.seteuid(0)
        yield name
        with listener.accept()[0] as connection:
            assert connection.recv(100) == b""


@pytest.mark.skipif(os.getuid() != 0, reason="only root may start a process of another user")
async def test_nobody_is_told_a_token_who_is_of_another_user(listener_of_another_user: str) -> None:
    """Whoever comes first has an abstract name."""
    async with both_ends() as (receiver, sender):
        with receiver.expect() as answer:
            reply_to = replace(answer.reply_to, address=replace(answer.reply_to.address, socket=listener_of_another_user))
            with pytest.raises(AnswerLost, match="another user"):
                await sender.send(reply_to, saying("secret"))


async def test_an_answer_whose_call_has_failed_is_freed_at_once() -> None:
    """A traceback of its error would hold it, and with it the call's body, until all garbage is collected."""
    gc.collect()
    gc.disable()
    try:
        async with both_ends() as (receiver, _):
            with receiver.expect() as answer:
                known, call = ref(answer), asyncio.get_running_loop().create_future()
                call.set_exception(AnswerLost("the replica has gone"))
                await _follow(cast(DeploymentResponse[Any], call), answer)
            del answer, call
            assert known() is None
    finally:
        gc.enable()
