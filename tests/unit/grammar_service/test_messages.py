from __future__ import annotations

import pickle

import pytest

from grammar_service.errors import (
    CompileFailed,
    CompileTimeout,
    GrammarError,
    GrammarTooLarge,
    InvalidGrammar,
    MaskcastError,
    PoolBusy,
    PoolUnavailable,
    UnsupportedGrammar,
)
from grammar_service.messages import Compiled, CompileRequest, Prepared, Refusal
from grammar_service.spec import GrammarKind, GrammarSpec


@pytest.mark.parametrize("kind", [InvalidGrammar, UnsupportedGrammar, GrammarTooLarge, CompileTimeout, CompileFailed])
def test_a_grammar_error_survives_the_way_to_a_refusal_and_back(kind: type[GrammarError]) -> None:
    error = Refusal.of(kind("why", "/a")).error()
    assert isinstance(error, kind)
    assert (error.message, error.pointer) == ("why", "/a")


@pytest.mark.parametrize("kind", [PoolBusy, PoolUnavailable])
def test_a_pool_error_survives_the_way_to_a_refusal_and_back(kind: type[MaskcastError]) -> None:
    error = Refusal.of(kind("why")).error()
    assert type(error) is kind
    assert str(error) == "why"


@pytest.mark.parametrize(
    "message",
    [
        CompileRequest(GrammarSpec(GrammarKind.REGEX, "a"), "k", "xgrammar", 1.0),
        Compiled("k", b"blob", "redis", 1.0, "xgrammar"),
        Prepared.of(Compiled("k", bytes(10), "redis", 1.0, "xgrammar")),
        Refusal("invalid_grammar", "m", "/a"),
    ],
)
def test_messages_cross_processes(message: object) -> None:
    assert pickle.loads(pickle.dumps(message)) == message
