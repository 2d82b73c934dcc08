"""What a client sees of each error."""

from __future__ import annotations

import pickle

import pytest

from deployments.errors import ApiError, translated
from grammar_service.errors import (
    CompileFailed,
    CompileTimeout,
    GrammarTooLarge,
    InvalidGrammar,
    MaskcastError,
    PoolBusy,
    PoolUnavailable,
    UnsupportedGrammar,
)


@pytest.mark.parametrize("kind", [InvalidGrammar, UnsupportedGrammar, GrammarTooLarge, CompileTimeout, CompileFailed])
def test_a_grammar_at_fault_is_a_400_that_names_field_and_pointer(kind: type[InvalidGrammar]) -> None:
    error = translated(kind("no", "/properties/a"), "guided_json")
    assert (error.status, error.code, error.param) == (400, kind.code, "guided_json#/properties/a")
    assert error.body()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("error", [PoolBusy("full"), PoolUnavailable("gone")])
def test_a_pool_that_cannot_is_a_503_with_retry_after(error: MaskcastError) -> None:
    seen = translated(error)
    assert seen.status == 503
    assert int(seen.headers()["Retry-After"]) >= 1


def test_anything_else_of_ours_is_a_500() -> None:
    assert translated(MaskcastError("odd")).status == 500


def test_an_api_error_survives_the_way_between_processes() -> None:
    error = ApiError(503, "later", code="busy", param="x", kind="k", retry_after_s=3)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.status, copy.body(), copy.headers()) == (error.status, error.body(), error.headers())
