"""Masks that come from the broadcaster are those that the engine would have filled, or none."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.backends import CompiledGrammar, backend_named
from grammar_service.spec import FLEXIBLE, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.artifact_channel import Payload
from model_service.masks.broadcaster import MaskBroadcaster
from model_service.masks.client import MOST_LATE, RETRY_S, MaskClient
from model_service.masks.messages import Step
from model_service.wire import packed
from tests.driving import ids_of, schema_spec
from tests.integration.model_service.running_broadcaster import running_broadcaster
from tests.offered_grammars import offered, payload_of
from tests.tokenizers.tiny_tokenizer import OTHER_STOP_ID, VOCAB_SIZE, tiny_tokenizer
from tests.waiting import PATIENCE_S, until
from tests.walking_engine import WalkingEngine, hello

_OBJECT = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
SPECS = {
    "xgrammar": (schema_spec(_OBJECT), "xgrammar"),
    "xgrammar, spaced": (schema_spec(_OBJECT, FLEXIBLE), "xgrammar"),
    "llguidance": (schema_spec(_OBJECT), "llguidance"),
    "llguidance, spaced": (schema_spec(_OBJECT, FLEXIBLE), "llguidance"),
    "pattern": (GrammarSpec(GrammarKind.REGEX, "(ab|true){1,9}[0-9]{2,30}"), "xgrammar"),
    "choice": (GrammarSpec(GrammarKind.CHOICE, '["true", "12", "ab"]'), "llguidance"),
}
Started = Callable[..., WalkingEngine]


@pytest.fixture(scope="module")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)


@pytest.fixture(scope="module")
def payloads(tokenizer: GrammarTokenizer) -> dict[str, Payload]:
    return {name: payload_of(spec, tokenizer, backend) for name, (spec, backend) in SPECS.items()}


@pytest.fixture(scope="module")
def grammars(tokenizer: GrammarTokenizer, payloads: Mapping[str, Payload]) -> dict[str, CompiledGrammar]:
    return {name: backend_named(payload.backend).load(payload.data, tokenizer) for name, payload in payloads.items()}


@pytest.fixture(scope="module")
def channel(payloads: Mapping[str, Payload]) -> Iterator[str]:
    with offered(payloads) as name:
        yield name


@pytest.fixture(scope="module")
def forks() -> None:
    """Broadcasters of their own processes are forked from one that stays."""
    with running_broadcaster(f"maskcast-test-{uuid4().hex}"):
        pass


@pytest.fixture(autouse=True)
def nothing_is_left_behind(channel: str, forks: None) -> Iterator[None]:
    before = sorted(Path("/proc/self/fd").iterdir())
    yield
    assert [segment for segment in Path("/dev/shm").iterdir() if "maskcast" in segment.name] == []
    assert sorted(Path("/proc/self/fd").iterdir()) == before


@pytest.fixture
def broadcaster() -> Iterator[MaskBroadcaster]:
    broadcaster = MaskBroadcaster(f"maskcast-test-{uuid4().hex}", 64 << 20)
    broadcaster.start()
    with closing(broadcaster):
        yield broadcaster


@pytest.fixture
def engine(broadcaster: MaskBroadcaster, connected: Started) -> WalkingEngine:
    return connected(broadcaster.name)


@pytest.fixture
def connected(channel: str, tokenizer: GrammarTokenizer, grammars: Mapping[str, CompiledGrammar]) -> Iterator[Started]:
    engines: list[WalkingEngine] = []

    def connect(name: str, deadline_s: float = PATIENCE_S, **options: object) -> WalkingEngine:
        client = MaskClient(name, hello(tokenizer, channel), tokenizer.portable(), deadline_s=deadline_s, **options)  # type: ignore[arg-type]
        engines.append(WalkingEngine(client, grammars, VOCAB_SIZE))
        return engines[-1]

    yield connect
    for engine in engines:
        engine.client.close()


def with_masks(engine: WalkingEngine, drafts: int = 0) -> WalkingEngine:
    """It has a request for every grammar, and the masks of all."""
    for key in SPECS:
        engine.begin(key, key)
    engine.await_masks(drafts)
    return engine


class Clock:
    """Tells the time that the test says it is."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_masks_of_a_mixture_are_those_that_the_engine_would_fill(engine: WalkingEngine) -> None:
    for key in SPECS:
        for number in range(3):
            engine.begin(f"{key} {number}", key, (OTHER_STOP_ID,) if number == 2 else None)
    engine.await_masks(drafts=4)
    for step in range(30):
        assert engine.step(drafts=step % 5) == engine.walks.keys()


def test_requests_come_and_go(engine: WalkingEngine) -> None:
    for number, key in enumerate(SPECS):
        engine.begin(str(number), key)
        engine.await_masks()
        if number > 2:
            engine.end(str(number - 3))
        engine.step()
    assert engine.step() == {"3", "4", "5"}


def test_a_request_that_was_begun_late_is_caught_up_with(engine: WalkingEngine) -> None:
    engine.begin("first", "pattern")
    for token in ids_of("abtrueab"):
        engine.walks["first"].take(token)
    engine.await_masks()


COURSES = st.lists(st.tuples(st.sampled_from(["begin", "end", "step", "step", "step"]), st.integers(0, 1 << 16)), min_size=1, max_size=30)


def test_any_course_of_requests_has_the_right_masks(engine: WalkingEngine, broadcaster: MaskBroadcaster) -> None:
    @given(COURSES)
    @settings(max_examples=40, deadline=None)
    def goes_well(course: list[tuple[str, int]]) -> None:
        for action, chance in course:
            if action == "begin" and len(engine.walks) < 12:
                key = sorted(SPECS)[chance % len(SPECS)]
                engine.begin(f"{key} {uuid4().hex}", key, (OTHER_STOP_ID,) if chance & 32 else None)
            elif action == "end" and engine.walks:
                engine.end(sorted(engine.walks)[chance % len(engine.walks)])
            else:
                engine.step(drafts=chance % 5)

    goes_well()
    assert engine.client._late == broadcaster.totals.late == 0


def test_a_dropped_message_ends_the_session_and_the_client_begins_anew(connected: Started, broadcaster: MaskBroadcaster) -> None:
    clock = Clock()
    engine = with_masks(connected(broadcaster.name, clock=clock))
    ring = engine.ring
    engine.client._number += 1  # as if a step had been lost
    assert engine.step() == frozenset()
    until(lambda: broadcaster.totals.refused == 1)
    assert engine.step() == frozenset()
    clock.now += RETRY_S
    engine.await_masks()
    assert engine.ring != ring


def test_an_artifact_that_is_not_offered_is_left_to_the_engine(engine: WalkingEngine) -> None:
    engine.begin("there", "pattern")
    engine.client.begin("missing", "no such key", None, list)
    engine.await_masks()
    asked = engine.client.ask([("there", []), ("missing", [])])
    assert asked is not None
    assert list(asked.request_ids) == ["there"]


def test_tokens_that_the_grammar_forbids_cost_one_frame_and_that_request_only(engine: WalkingEngine) -> None:
    engine.begin("good", "pattern")
    engine.begin("bad", "pattern")
    engine.await_masks()
    ring = engine.ring
    engine.client.accept("bad", [ids_of("{")[0]])
    asked, _ = engine.ask()
    assert asked is not None
    assert engine.client.wait(asked) is None
    del engine.walks["bad"]
    engine.await_masks()
    asked = engine.client.ask([("good", []), ("bad", [])])
    assert asked is not None
    assert list(asked.request_ids) == ["good"]
    assert engine.ring == ring


def test_engines_share_grammars_and_have_rings_of_their_own(connected: Started, broadcaster: MaskBroadcaster) -> None:
    engines = [connected(broadcaster.name) for _ in range(3)]
    for engine in engines:
        engine.begin("x", "pattern")
    for engine in engines:
        engine.await_masks()
    assert len({engine.ring for engine in engines}) == 3
    engines[0].client.close()
    assert engines[1].step() == {"x"}
    until(lambda: broadcaster.engines == 2)


def test_an_engine_that_says_nothing_for_its_lease_is_forgotten(channel: str, connected: Started) -> None:
    with closing(MaskBroadcaster(f"maskcast-test-{uuid4().hex}", 64 << 20, lease_s=3)) as broadcaster:
        broadcaster.start()
        clock = Clock()
        engine = connected(broadcaster.name, clock=clock)
        engine.begin("x", "pattern")
        engine.ask()
        until(lambda: broadcaster.engines == 1)
        until(lambda: broadcaster.engines == 0)

        def is_served_again() -> bool:
            clock.now += RETRY_S
            return engine.masked() == {"x"}

        until(is_served_again)


def test_a_killed_broadcaster_is_missed_and_a_new_one_taken_up(connected: Started) -> None:
    name, clock = f"maskcast-test-{uuid4().hex}", Clock()
    with running_broadcaster(name) as broadcaster:
        engine = with_masks(connected(name, clock=clock), drafts=3)
        ring = engine.ring
        broadcaster.stop()
        asked, _ = engine.ask()
        assert asked is not None
        broadcaster.kill()
    # The clock stands still: nobody waits for the deadline.
    assert engine.client.wait(asked) is None
    assert engine.ring is None
    assert engine.step() == frozenset()
    with running_broadcaster(name):
        clock.now += RETRY_S
        engine.await_masks(drafts=3)
        assert engine.ring not in (None, ring)


def test_a_stopped_broadcaster_costs_a_few_deadlines_and_no_more(connected: Started) -> None:
    name, clock = f"maskcast-test-{uuid4().hex}", Clock()
    with running_broadcaster(name) as broadcaster:
        engine = with_masks(connected(name, clock=clock))
        broadcaster.stop()
        clock.now += PATIENCE_S
        engine.client._deadline_s = 0.0
        missed = [engine.step() for _ in range(MOST_LATE)]
        assert missed == [frozenset()] * MOST_LATE
        assert engine.ring is None
        # It is tried again, once a second, and nobody waits for it.
        for _ in range(5):
            clock.now += RETRY_S
            assert engine.ask()[0] is None
        broadcaster.resume()
        engine.client._deadline_s = PATIENCE_S
        engine.await_masks()


def test_a_late_frame_is_not_taken_for_the_one_after_it(connected: Started) -> None:
    name = f"maskcast-test-{uuid4().hex}"
    with running_broadcaster(name) as broadcaster:
        engine = with_masks(connected(name))
        for _ in range(5):
            broadcaster.stop()
            engine.client._deadline_s = 0.0
            assert engine.step() == frozenset()
            broadcaster.resume()
            engine.client._deadline_s = PATIENCE_S
            assert engine.step() == engine.walks.keys()
        assert engine.step() == engine.walks.keys()
        assert broadcaster.totals()["late"] == 5


def test_what_does_not_fit_the_sockets_buffer_is_sent_on_later(engine: WalkingEngine) -> None:
    tokens = ids_of("ab") * 200_000
    engine.client.begin("long", "choice", None, lambda: tokens)
    engine.begin("x", "pattern")
    engine.await_masks()


def test_bytes_that_are_no_message_are_an_engines_end_and_nobody_elses(engine: WalkingEngine, broadcaster: MaskBroadcaster) -> None:
    engine.begin("x", "pattern")
    engine.await_masks()
    for data in (b"\xff" * 64, b"\4\0\0\0abcd", packed(Step(0, [], [], [], [], 0))):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(f"\0{broadcaster.name}")
            stranger.sendall(data)
            assert stranger.recv(1) == b""
    until(lambda: broadcaster.totals.refused == 3)
    assert engine.step() == {"x"}


def test_requests_that_are_over_are_forgotten(connected: Started) -> None:
    name = f"maskcast-test-{uuid4().hex}"
    with running_broadcaster(name) as broadcaster:
        engine = with_masks(connected(name))
        assert broadcaster.totals()["requests"] == len(SPECS)
        for key in list(SPECS)[1:]:
            engine.end(key)
        engine.step()
        assert broadcaster.totals()["requests"] == 1
        engine.client.close()
        until(lambda: broadcaster.totals()["engines"] == 0)
        assert broadcaster.totals()["requests"] == 0
