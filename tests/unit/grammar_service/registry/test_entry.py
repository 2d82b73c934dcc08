"""An entry means what was stored under its name, or it is no entry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.errors import EntryError
from grammar_service.registry import GrammarEntry, is_valid_id
from grammar_service.registry.entry import seal, unseal
from grammar_service.spec import GrammarKind, GrammarSpec

PLACE = "test:registry:2:me:person"
SECRET = b"secret"
ENTRY = GrammarEntry("person", GrammarSpec(GrammarKind.REGEX, "[a-zß]+", "compact"), 1_700_000_000)
SEALED = seal(ENTRY, PLACE, SECRET)


def test_while_a_secret_is_changed_both_are_believed_and_the_first_seals() -> None:
    assert unseal(SEALED, PLACE, (b"new", SECRET)) == ENTRY
    new = seal(ENTRY, PLACE, (b"new", SECRET))
    assert unseal(new, PLACE, (SECRET, b"new")) == ENTRY
    with pytest.raises(EntryError):
        unseal(new, PLACE, SECRET)


def test_what_is_sealed_is_what_comes_out() -> None:
    assert unseal(SEALED, PLACE, SECRET) == ENTRY


@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
def test_no_byte_can_be_changed(index: int, change: int) -> None:
    changed = bytearray(SEALED)
    changed[index] ^= change
    with pytest.raises(EntryError):
        unseal(bytes(changed), PLACE, SECRET)


@given(st.binary(max_size=200))
def test_rubbish_is_no_entry(data: bytes) -> None:
    for rubbish in (data, SEALED[:4] + data, SEALED + data + b"x", SEALED[: len(data)]):
        with pytest.raises(EntryError):
            unseal(rubbish, PLACE, SECRET)


@pytest.mark.parametrize("place", ["test:registry:2:me:order", "other:registry:2:me:person", "test:registry:2:me:perso", ""])
def test_an_entry_holds_only_where_it_was_stored(place: str) -> None:
    with pytest.raises(EntryError):
        unseal(SEALED, place, SECRET)


def test_another_secret_is_another_world() -> None:
    with pytest.raises(EntryError):
        unseal(SEALED, PLACE, b"guess")


def test_a_place_cannot_borrow_from_the_entry() -> None:
    """The bytes that are authenticated say where the place ends."""
    sealed = seal(ENTRY, "place", SECRET)
    body = sealed[36:]
    moved = sealed[:36] + body[1:]
    with pytest.raises(EntryError):
        unseal(moved, "place" + chr(body[0]), SECRET)


@pytest.mark.parametrize("name", ["a", "person.v2", "A-b_c.9", "x" * 64])
def test_names_that_may_be_used(name: str) -> None:
    assert is_valid_id(name)


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "a/b", "ä", "a\n", "a:b", "٣", "a\0"])
def test_names_that_may_not_be_used(name: str) -> None:
    assert not is_valid_id(name)
