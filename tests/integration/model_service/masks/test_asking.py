"""Which masks a step needs, and whom they can be asked of; nobody answers here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from types import SimpleNamespace
from uuid import uuid4

import pytest
from vllm.v1.structured_output import ConstraintBounds

from grammar_service.backends import backend_named
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.core.deferred_grammar import DeferredGrammar
from model_service.engine.core.mask_source import MaskAsking
from model_service.masks.client import MaskClient
from model_service.masks.messages import VERSION, Hello
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

TOKENIZER = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
HELD, ENDS_IN_DRAFTS, REASONS = "held", "ends in drafts", "reasons"


@dataclass
class Reasoning:
    """What vLLM's manager says of requests that reason before they answer."""

    reasoner_cls: type | None = object
    bounds: dict[str, ConstraintBounds] = field(
        default_factory=lambda: {
            HELD: ConstraintBounds(0, 0),
            ENDS_IN_DRAFTS: ConstraintBounds(1, 1),
            REASONS: ConstraintBounds(3, 3),
        }
    )

    def _get_constraint_bounds(self, request: SimpleNamespace, drafts: Sequence[int]) -> ConstraintBounds:
        return self.bounds[request.request_id]


def _request(request_id: str, **changes: object) -> SimpleNamespace:
    backend = backend_named("xgrammar")
    grammar = backend.load(backend.compile(GrammarSpec(GrammarKind.REGEX, "[a-z]+"), TOKENIZER).data, TOKENIZER)
    told = DeferredGrammar(grammar.matcher(None, 0), "key", None, defers=True)
    fields = {"structured_output_request": SimpleNamespace(grammar=told), "resumable": False, "is_prefill_chunk": False, **changes}
    return SimpleNamespace(request_id=request_id, **fields)


def _output(requests: dict[str, SimpleNamespace], drafts: dict[str, list[int]]) -> SimpleNamespace:
    new = [SimpleNamespace(req_id=request_id) for request_id in requests]
    return SimpleNamespace(scheduled_new_reqs=new, num_scheduled_tokens=dict.fromkeys(requests, 1), scheduled_spec_decode_tokens=drafts)


@pytest.fixture
def client() -> Iterator[MaskClient]:
    hello = Hello(VERSION, "alone", TOKENIZER.vocab_size, TOKENIZER.fingerprint, "none", 8)
    with closing(MaskClient(f"maskcast-nobody-{uuid4().hex}", hello, TOKENIZER.portable())) as client:
        yield client


def test_who_still_reasons_and_who_may_stop_are_left_to_vllm(client: MaskClient) -> None:
    requests = {request_id: _request(request_id) for request_id in (HELD, ENDS_IN_DRAFTS, REASONS)}
    output = _output(requests, {request_id: [5, 6] for request_id in requests})
    asking = MaskAsking(client, Reasoning(), requests, VOCAB_SIZE)
    asking.begin(output)
    needed = asking.ask(output)
    assert needed.rows == [(HELD, [5, 6])]
    assert needed.others == [ENDS_IN_DRAFTS, REASONS]
    assert needed.asked is None


def test_chunks_and_free_requests_need_none(client: MaskClient) -> None:
    requests = {
        "chunk": _request("chunk", is_prefill_chunk=True),
        "free": _request("free", structured_output_request=None),
        "session": _request("session", resumable=True),
        "plain": _request("plain"),
    }
    output = _output(requests, {})
    asking = MaskAsking(client, Reasoning(reasoner_cls=None), requests, VOCAB_SIZE)
    asking.begin(output)
    needed = asking.ask(output)
    assert [request_id for request_id, _ in needed.rows] == ["plain"]
    assert needed.others == ["session"]


def test_nothing_is_delivered_where_nothing_is_masked(client: MaskClient) -> None:
    requests = {"free": _request("free", structured_output_request=None)}
    output = _output(requests, {})
    asking = MaskAsking(client, Reasoning(), requests, VOCAB_SIZE)
    assert asking.masks(output, asking.ask(output)) is None
