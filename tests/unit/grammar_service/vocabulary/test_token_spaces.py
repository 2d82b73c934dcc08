from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.spec import MAX_WHITESPACE
from grammar_service.vocabulary.token_spaces import ESCAPED, IN_STRING, TokenSpaces, advance

VOCABULARY = [b"", b" ", b"  a", b"a ", b"\n" * 33, b'" ' + b" " * 40, b" " * 16, b'"', b"\\", b"{"] + [b"x"] * 30
STATES = [0, 1, 16, 17, 31, MAX_WHITESPACE, IN_STRING, ESCAPED]


@pytest.mark.parametrize("state", STATES)
def test_the_mask_of_a_state_is_what_it_can_advance_by(state: int) -> None:
    mask = TokenSpaces(VOCABULARY).mask(state)
    bits = torch.ones(64, dtype=torch.bool) if mask is None else ((mask.unsqueeze(1) >> torch.arange(32)) & 1).flatten().bool()
    assert [token for token, text in enumerate(VOCABULARY) if bool(bits[token]) != (advance(state, text) is not None)] == []


JSON = st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(JSON, st.integers(0, 6))
def test_no_text_of_json_dumps_is_over_the_bound(value: object, indent: int) -> None:
    text = json.dumps(value, indent=min(indent, 4), ensure_ascii=False).encode()
    deepest = max((len(line) - len(line.lstrip(b" ")) for line in text.splitlines()), default=0)
    assert deepest >= MAX_WHITESPACE or advance(0, text) is not None


def test_ids_without_text_have_none() -> None:
    spaces = TokenSpaces(VOCABULARY)
    assert spaces.text(-1) == spaces.text(len(VOCABULARY)) == b""
