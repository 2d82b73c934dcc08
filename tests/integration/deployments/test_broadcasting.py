"""The mask broadcaster as an actor: one for a node, there again when it was killed, and gone when nobody needs it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
from collections.abc import Iterator
from contextlib import closing

import pytest
import ray

from deployments.errors import ApiError
from deployments.replicas import broadcasting
from deployments.replicas.broadcasting import NodeMasks
from deployments.telemetry.page import MetricsPage
from grammar_service.backends import backend_named
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.hang_watch import main_threads
from model_service.masks.client import MaskClient
from tests.offered_grammars import offered, payload_of
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer
from tests.waiting import until
from tests.walking_engine import WalkingEngine, hello

pytestmark = pytest.mark.timeout(300)
GRAMMAR_BYTES = 64 << 20


@pytest.fixture(scope="module")
def masks(ray_serve: None) -> NodeMasks:
    return NodeMasks("tested", GRAMMAR_BYTES)


@pytest.fixture
def engine(masks: NodeMasks) -> Iterator[WalkingEngine]:
    """It is not connected yet."""
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    payload = payload_of(GrammarSpec(GrammarKind.REGEX, "[0-9]*"), tokenizer, "xgrammar")
    grammar = backend_named(payload.backend).load(payload.data, tokenizer)
    with offered({"digits": payload}) as channel:
        client = MaskClient(masks.socket_name, hello(tokenizer, channel), tokenizer.portable(), deadline_s=1.0)
        with closing(client):
            engine = WalkingEngine(client, {"digits": grammar}, VOCAB_SIZE)
            engine.begin("request", "digits")
            yield engine


def test_a_killed_broadcaster_is_restarted_by_ray_and_taken_up_again(masks: NodeMasks, engine: WalkingEngine) -> None:
    asyncio.run(masks.want())
    engine.await_masks()
    killed, ring = process_of(masks), engine.ring
    os.kill(killed, signal.SIGKILL)
    engine.await_masks()
    assert engine.ring not in (None, ring)
    assert process_of(masks) != killed


async def test_one_that_hangs_is_killed_and_another_one_takes_its_place(ray_serve: None) -> None:
    masks = NodeMasks("hanging", GRAMMAR_BYTES, hang_s=2.0)
    async with asyncio.timeout(60):
        while masks.process is None:
            await masks.want()
    hanging = masks.process
    os.kill(hanging, signal.SIGSTOP)
    async with asyncio.timeout(120):
        while masks.process in (hanging, None):
            masks.keep()
            await asyncio.sleep(0.5)  # replicas say so every two seconds
    assert main_threads([hanging]) == {}


async def test_one_that_takes_too_much_memory_starts_anew(ray_serve: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcasting, "GROWTH_FACTOR", -1)
    masks = NodeMasks("grown", GRAMMAR_BYTES)
    await masks.want()
    grown = masks.process
    try:
        async with asyncio.timeout(120):
            while masks.process in (None, grown):
                await masks.want()
                await asyncio.sleep(0.1)
    finally:
        ray.kill(masks.actor(), no_restart=True)


def test_replicas_of_a_node_have_one_broadcaster_and_metrics_tell_of_it(masks: NodeMasks, engine: WalkingEngine) -> None:
    other = NodeMasks("tested", GRAMMAR_BYTES)
    for hold in (masks, other):
        asyncio.run(hold.want())
    assert other.socket_name == masks.socket_name
    engine.await_masks()
    until(lambda: ray.get(other.actor().totals.remote())["frames"] >= 1)  # a frame is counted after it was told
    assert ray.get(other.actor().totals.remote())["engines"] == 1
    until(lambda: b"maskcast_mask_frames_total" in page())


def page() -> bytes:
    """Empty where it takes longer than anybody waits."""
    try:
        return asyncio.run(MetricsPage().read())
    except ApiError:
        return b""


def test_who_wants_it_again_and_again_keeps_no_more_of_it(masks: NodeMasks) -> None:
    """Replicas say so every two seconds: each time Ray kept a class of actors more, 24 MB an hour."""
    asyncio.run(masks.want())
    before = signatures()
    for _ in range(5):
        asyncio.run(masks.want())
    assert signatures() - before < 5, "of the methods of no actor class"


def test_one_that_was_ended_is_there_again_when_it_is_wanted(masks: NodeMasks, engine: WalkingEngine) -> None:
    asyncio.run(masks.want())
    ray.kill(masks.actor(), no_restart=True)
    asyncio.run(masks.want())
    engine.await_masks()


def test_one_that_nobody_needs_ends_itself(masks: NodeMasks) -> None:
    unneeded = NodeMasks("unneeded", GRAMMAR_BYTES, idle_s=0.0)
    unneeded.actor()
    until(lambda: unneeded.name not in [actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)])


def signatures() -> int:
    """Those of Python's `inspect` that live."""
    gc.collect()
    return sum(type(each) is inspect.Signature for each in gc.get_objects())


def process_of(masks: NodeMasks) -> int:
    return int(ray.get(masks.actor().__ray_call__.remote(lambda _: os.getpid())))
