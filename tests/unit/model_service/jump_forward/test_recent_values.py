"""What members of a grammar's answers were of late, for their owner alone."""

from __future__ import annotations

import json

from model_service.jump_forward.recent_values import FEW, LONGEST, MOST_MEMBERS, RECENT, REMEMBERED, RecentValues


def answer(**members: object) -> bytes:
    return json.dumps(members).encode()


def test_the_most_frequent_value_is_likely_and_the_later_one_of_two() -> None:
    values = RecentValues()
    for city in ("Leeds", "Porto", "Porto", "Graz"):
        values.add("tenant", answer(city=city))
    assert values.likely("tenant", "city") == b'"Porto"'
    values.add("tenant", answer(city="Graz"))
    assert values.likely("tenant", "city") == b'"Graz"'
    for _ in range(RECENT):
        values.add("tenant", answer(city="Cork"))
    assert values.likely("tenant", "city") == b'"Cork"'


def test_values_of_all_kinds_and_depths_are_found_by_their_names() -> None:
    values = RecentValues()
    values.add("tenant", answer(is_new=True, total=7.5, nothing=None, items=[{"unit": "kg"}, 3], place={"town": "Malmö"}))
    found = [values.likely("tenant", name) for name in ("is_new", "total", "nothing", "unit", "town", "items", "place")]
    assert found == [b"true", b"7.5", b"null", b'"kg"', '"Malmö"'.encode(), b"", b""]


def test_forced_calls_of_tools_are_arrays() -> None:
    values = RecentValues()
    values.add("tenant", json.dumps([{"name": "book", "parameters": {"day": "Monday"}}, 3, [{"x": 1}]]).encode())
    assert [values.likely("tenant", name) for name in ("name", "day", "x")] == [b'"book"', b'"Monday"', b"1"]


def test_nobody_else_gets_them() -> None:
    values = RecentValues()
    values.add(("a", "grammar"), answer(city="Leeds"))
    assert values.likely(("b", "grammar"), "city") == b""
    assert values.likely(("a", "another grammar"), "city") == b""


def test_what_is_no_object_or_too_much_is_left_out() -> None:
    values = RecentValues()
    for text in (b"", b"no", b"[1]", b"7", b'{"cut": ', b'{"a": ' * 5000, b"\xff{", answer(long="x" * LONGEST)):
        values.add("tenant", text)
    assert values.likely("tenant", "long") == b""
    values.add("tenant", answer(**{"x" * 100: 1}, **{f"member {number}": 1 for number in range(2 * MOST_MEMBERS)}))
    assert [values.likely("tenant", f"member {number}") for number in range(2 * MOST_MEMBERS)] == [b""] * MOST_MEMBERS + [
        b"1"
    ] * MOST_MEMBERS
    assert values.likely("tenant", "x" * 100) == b""
    for number in range(REMEMBERED):
        values.add(number, answer(a=1))
    assert values.likely("tenant", f"member {MOST_MEMBERS}") == b""


def test_how_many_words_a_value_has_is_told_once_some_are_known() -> None:
    values = RecentValues()
    for name in ("Ada Young", "Omar Haddad")[: FEW - 1]:
        values.add("tenant", answer(name=name))
    assert values.words("tenant", "name") == 0
    values.add("tenant", answer(name="Jean-Luc"))
    assert values.words("tenant", "name") == 2
