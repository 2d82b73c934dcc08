"""Workers are told where a frame is once all of them can read it there; until then, and where none came, they are sent it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from uuid import uuid4

import pytest

from grammar_service.backends import backend_named
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.workers.mask_output import MaskDelivery, MaskPart, StepMasks
from model_service.masks.broadcaster import MaskBroadcaster
from model_service.masks.client import MaskClient
from model_service.masks.ring.ring import FrameRef, RingReader
from model_service.shared_memory import MemoryAddress
from tests.offered_grammars import offered, payload_of
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer
from tests.walking_engine import WalkingEngine, hello

TOKENIZER = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
PAYLOAD = payload_of(GrammarSpec(GrammarKind.REGEX, "[a-z]{1,900}"), TOKENIZER, "xgrammar")


class Workers:
    """Each of them a ring that it reads from; their answers come when they are told to answer."""

    def __init__(self, count: int) -> None:
        self.rings: list[RingReader] = []
        self._count = count
        self.reachable = True
        self._asked: list[tuple[MemoryAddress, Future[list[bool]]]] = []

    def attach(self, address: MemoryAddress) -> Future[list[bool]]:
        self._asked.append((address, Future()))
        return self._asked[-1][1]

    def answer(self) -> None:
        ((address, future),) = self._asked
        self.rings = [RingReader(address) for _ in range(self._count)]
        future.set_result([True] * (self._count - 1) + [self.reachable])


@pytest.fixture
def engine() -> Iterator[WalkingEngine]:
    with closing(MaskBroadcaster(f"maskcast-test-{uuid4().hex}", 64 << 20)) as broadcaster, offered({"key": PAYLOAD}) as channel:
        broadcaster.start()
        with closing(MaskClient(broadcaster.name, hello(TOKENIZER, channel), TOKENIZER.portable(), deadline_s=5.0)) as client:
            engine = WalkingEngine(client, {"key": backend_named("xgrammar").load(PAYLOAD.data, TOKENIZER)}, VOCAB_SIZE)
            engine.begin("first", "key")
            engine.await_masks()
            yield engine


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers(2)
    yield workers
    for ring in workers.rings:
        ring.close()


def _filled(request_ids: Sequence[str]) -> MaskPart:
    return MaskPart(request_ids, [1] * len(request_ids), b"filled here")


def _step(engine: WalkingEngine) -> StepMasks:
    asked, _ = engine.ask()
    assert asked is not None
    return StepMasks(engine.client, _filled, asked, None)


def _frame(delivery: MaskDelivery, step: StepMasks) -> bytes | FrameRef:
    (part,) = delivery.parts(step).parts
    assert (part.request_ids, part.counts) == (["first"], [1])
    return part.frame


def test_frames_are_sent_along_until_all_workers_have_mapped_the_ring(engine: WalkingEngine, workers: Workers) -> None:
    delivery = MaskDelivery(workers.attach)
    inline = _frame(delivery, _step(engine))
    assert isinstance(inline, bytes)
    workers.answer()
    for _ in range(2):
        reference = _frame(delivery, _step(engine))
        assert isinstance(reference, FrameRef)
        assert [ring.read(reference) for ring in workers.rings] == [inline, inline]


def test_they_always_are_where_one_cannot(engine: WalkingEngine, workers: Workers) -> None:
    delivery = MaskDelivery(workers.attach)
    workers.reachable = False
    frames = {_frame(delivery, _step(engine))}
    workers.answer()
    frames |= {_frame(delivery, _step(engine)) for _ in range(3)}
    assert [type(frame) for frame in frames] == [bytes]


def test_what_does_not_come_is_filled_here(engine: WalkingEngine, workers: Workers) -> None:
    step = _step(engine)
    engine.client.close()
    assert _frame(MaskDelivery(workers.attach), step) == b"filled here"


def test_what_was_filled_beforehand_comes_with_it(engine: WalkingEngine, workers: Workers) -> None:
    asked, _ = engine.ask()
    own = MaskPart(["second"], [1], b"filled before")
    parts = MaskDelivery(workers.attach).parts(StepMasks(engine.client, _filled, asked, own)).parts
    assert parts[0] == own
    assert [part.request_ids for part in parts] == [["second"], ["first"]]
