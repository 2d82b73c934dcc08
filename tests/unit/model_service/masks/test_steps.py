"""Both ends agree on requests, slots and tokens, and notice when they do not."""

from __future__ import annotations

import pytest

from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.errors import InvalidMessage
from model_service.masks.engine_requests import EngineRequests
from model_service.masks.messages import FROM_ENGINE, Begun, Step
from model_service.masks.request_ledger import RequestLedger
from model_service.wire import Inbox, packed
from tests.driving import grammar_of, ids_of
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

AB, ONE, BRACE = ids_of("ab")[0], ids_of("1")[0], ids_of("{")[0]


@pytest.fixture(scope="module")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)


@pytest.fixture
def requests(tokenizer: GrammarTokenizer) -> EngineRequests:
    """Slot 0 is ready, slot 1 is not."""
    requests = EngineRequests()
    requests.take(step(0, begun=[Begun(0, "k", None, [AB]), Begun(1, "k", None, [])]))
    assert requests.loaded(0, grammar_of(GrammarSpec(GrammarKind.REGEX, "ab[0-9]*"), tokenizer))
    return requests


def step(
    number: int,
    ended: list[int] | None = None,
    begun: list[Begun] | None = None,
    tokens: list[tuple[int, list[int]]] | None = None,
    rows: list[tuple[int, list[int]]] | None = None,
) -> Step:
    return Step(number, ended or [], begun or [], tokens or [], rows or [], 0)


@pytest.mark.parametrize(
    "invalid",
    [
        step(0),
        step(2),
        step(1, ended=[7]),
        step(1, begun=[Begun(1, "k", None, [])]),
        step(1, tokens=[(7, [1])]),
        step(1, rows=[(1, [])]),
        step(1, rows=[(7, [])]),
        step(1, rows=[(0, []), (0, [])]),
        step(1, rows=[(0, [1] * 65)]),
    ],
)
def test_a_step_that_does_not_follow_is_refused(requests: EngineRequests, invalid: Step) -> None:
    def hear() -> None:
        requests.take(invalid)
        requests.rows(invalid)

    with pytest.raises(InvalidMessage):
        hear()


def test_tokens_that_come_while_a_grammar_is_loaded_are_replayed(requests: EngineRequests, tokenizer: GrammarTokenizer) -> None:
    requests.take(step(1, tokens=[(1, [AB])]))
    requests.take(step(2, tokens=[(1, [ONE])]))
    assert requests.loaded(1, grammar_of(GrammarSpec(GrammarKind.REGEX, "ab1"), tokenizer)) is True


def test_a_request_that_ends_while_its_grammar_is_loaded_is_forgotten(requests: EngineRequests, tokenizer: GrammarTokenizer) -> None:
    requests.take(step(1, ended=[1]))
    assert requests.loaded(1, None) is None
    assert len(requests._requests) == 1


def test_a_failed_request_is_told_once_and_then_ignored_to_its_end(requests: EngineRequests) -> None:
    asking = step(1, tokens=[(0, [BRACE])], rows=[(0, [])])
    assert requests.take(asking) == [0]
    assert requests.rows(asking) is None
    assert requests.take(step(2, tokens=[(0, [ONE])])) == []
    requests.take(step(3, ended=[0]))
    assert len(requests._requests) == 1


def test_what_is_sent_is_sent_once_and_a_slot_is_never_used_again() -> None:
    ledger = RequestLedger()
    ledger.begin("a", "k", (3,), lambda: [5])
    ledger.accept("a", [5])
    assert ledger.step(0, [], 0) == step(0, begun=[Begun(0, "k", (3,), [5])])
    assert ledger.step(1, [], 0) is None
    ledger.accept("a", [6])
    ledger.accept("a", [7])
    assert ledger.step(1, [], 0) == step(1, tokens=[(0, [6, 7])])
    ledger.accept("a", [8])
    ledger.begin("a", "l", None, list)
    assert ledger.step(2, [], 0) == step(2, ended=[0], begun=[Begun(1, "l", None, [])])
    ledger.set_ready([0], True)
    assert ledger.ready([("a", [])]) == []
    ledger.set_ready([1], True)
    assert ledger.ready([("a", [4]), ("b", [])]) == [("a", 1, [4])]
    ledger.reset()
    assert ledger.ready([("a", [])]) == []
    assert ledger.step(0, [], 0) == step(0, begun=[Begun(2, "l", None, [])])


def test_a_request_that_was_never_sent_is_never_ended_either() -> None:
    ledger = RequestLedger()
    ledger.begin("a", "k", None, list)
    ledger.end("a")
    ledger.end("unknown")
    ledger.accept("unknown", [1])
    assert ledger.step(0, [], 0) is None


def test_messages_arrive_in_whatever_pieces() -> None:
    messages = [step(number, tokens=[(number, list(range(number)))]) for number in range(20)]
    stream = b"".join(packed(message) for message in messages)
    for size in (1, 3, 7, len(stream)):
        inbox = Inbox(FROM_ENGINE)
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [message for piece in pieces for message in inbox.feed(piece)] == messages
