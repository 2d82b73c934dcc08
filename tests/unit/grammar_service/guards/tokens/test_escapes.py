"""A string read in pieces is what `json` makes of it."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.guards.tokens.escapes import read

_SPELLINGS = st.lists(
    st.one_of(
        st.sampled_from(['\\"', "\\\\", "\\/", "\\n", "\\u0061", "\\ud83d", "\\uDE00", "\\ud83d\\ude00", "\\u00e9", "\\uD800"]),
        st.characters(codec="utf-8", exclude_characters='"\\', min_codepoint=32),
    )
).map("".join)


@given(_SPELLINGS, st.lists(st.integers(0, 80)), st.sampled_from(["", ": 1", '", "a"']))
def test_pieces_together_stand_for_what_the_string_stands_for(inside: str, cuts: list[int], rest: str) -> None:
    raw = inside.encode() + b'"'
    places = sorted({cut for cut in cuts if cut < len(raw)} | {0, len(raw)})
    text = pending = b""
    for start, stop in itertools.pairwise(places):
        last = stop == len(raw)
        piece = read(pending, b"??" + raw[start:stop] + (rest.encode() if last else b""), 2)
        text, pending = text + piece.text, piece.pending
        assert piece.end == (2 + len(raw) - 1 - start if last else -1)
    assert text == json.loads(f'"{inside}"').encode("utf-8", "surrogatepass")
    assert pending == b""


@pytest.mark.parametrize("start", ["\\", "\\u", "\\u00", "\\u006", "\\ud83d", "\\ud83d\\", "\\ud83d\\ud", "\\ud83d\\ude0"])
def test_an_escape_that_has_begun_is_kept(start: str) -> None:
    assert read(b"", b"ab" + start.encode()) == (b"ab", start.encode(), -1)
