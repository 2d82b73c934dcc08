from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.artifacts.refusals import LASTING, decode_refusal, encode_refusal
from grammar_service.errors import ArtifactError, CompileFailed, CompileTimeout, GrammarError
from grammar_service.messages import Refusal


@given(st.sampled_from(LASTING), st.text(max_size=100), st.none() | st.text(max_size=50))
def test_a_lasting_verdict_comes_back_as_it_was(kind: type[GrammarError], message: str, pointer: str | None) -> None:
    refusal = Refusal.of(kind(message, pointer))
    again = decode_refusal(encode_refusal(refusal))
    assert again == refusal
    assert type(again.error()) is kind


@pytest.mark.parametrize("code", [CompileTimeout.code, CompileFailed.code, "pool_busy", "anything"])
def test_what_another_try_might_change_is_not_read_back(code: str) -> None:
    with pytest.raises(ArtifactError):
        decode_refusal(encode_refusal(Refusal(code, "message")))


@given(st.binary(max_size=100))
def test_rubbish_is_an_artifact_error(payload: bytes) -> None:
    with pytest.raises(ArtifactError):
        decode_refusal(payload)


@pytest.mark.parametrize("value", [{}, {"code": 1, "message": ""}, {"code": "invalid_grammar"}, [], None])
def test_another_shape_is_an_artifact_error(value: object) -> None:
    with pytest.raises(ArtifactError):
        decode_refusal(msgspec.msgpack.encode(value))
