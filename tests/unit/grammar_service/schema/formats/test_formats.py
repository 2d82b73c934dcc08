"""Each format against its RFC's edge cases, and against checkers that others wrote."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable
from datetime import date, datetime, time
from functools import lru_cache

import idna
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.plain import plain_patterns
from grammar_service.regexes.regex import parse_regex
from grammar_service.regexes.string_set import StringSet
from grammar_service.regexes.unending import never_runs_out
from grammar_service.schema.formats.known import FORMATS
from tests.unit.grammar_service.schema.formats.instances import INVALID, VALID


@lru_cache(maxsize=64)
def compiled(pattern: str) -> list[regex.Pattern[str]]:
    return [regex.compile(regex.sub(r"(?<!\\)\$", r"\\Z", plain)) for plain in plain_patterns(pattern)]


def matches(pattern: str | None, text: str) -> bool:
    """By another library, from the patterns that a backend gets."""
    return all(one.search(text) for one in compiled(pattern or ""))


def test_every_format_has_instances() -> None:
    assert FORMATS.keys() == VALID.keys() == INVALID.keys()


@pytest.mark.parametrize("name", sorted(name for name, known in FORMATS.items() if known.never_exhausted))
def test_strings_that_are_said_to_go_on_do(name: str) -> None:
    regex_of = parse_regex(FORMATS[name].pattern, Dialect.ECMA)
    assert never_runs_out(StringSet.of_regex(regex_of, Effort(10_000_000), max_states=10_000))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_only_valid_strings_are_matched(name: str) -> None:
    pattern = FORMATS[name].pattern
    assert [text for text in VALID[name] if not matches(pattern, text)] == []
    assert [text for text in INVALID[name] if matches(pattern, text)] == []


@pytest.mark.parametrize("name", sorted(name for name, known in FORMATS.items() if known.maybe))
def test_whatever_may_be_valid_is_not_taken_for_certainly_invalid(name: str) -> None:
    assert [text for text in VALID[name] if not matches(FORMATS[name].maybe, text)] == []


@pytest.mark.parametrize(
    ("name", "text"), [("time", "00:29:60-23:30"), ("hostname", "xn--9n2bp8q.xn--9t4b11yi5a"), ("uri-template", "{=a}")]
)
def test_what_is_left_out_is_not_taken_for_invalid_either(name: str, text: str) -> None:
    assert not matches(FORMATS[name].pattern, text)
    assert matches(FORMATS[name].maybe, text)


def _address(kind: Callable[[str], object]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return holds


def _host(text: str) -> bool:
    try:
        return all(
            len(idna.alabel(label)) <= 63 for label in text.replace("\u3002", ".").replace("\uff0e", ".").replace("\uff61", ".").split(".")
        )
    except idna.IDNAError:
        return False


CHECKERS: dict[str, Callable[[str], bool]] = {
    "date": _address(date.fromisoformat),
    "ipv4": _address(ipaddress.IPv4Address),
    "ipv6": _address(ipaddress.IPv6Address),
    "uuid": _address(uuid.UUID),
    "idn-hostname": _host,
    "hostname": _host,
}


@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("name", sorted(CHECKERS))
@given(data=st.data())
def test_what_is_matched_is_valid_to_others(name: str, data: st.DataObject) -> None:
    main = plain_patterns(FORMATS[name].pattern)[-1].removesuffix("$") + r"\Z"
    text = data.draw(st.from_regex(main))
    if matches(FORMATS[name].pattern, text) and not (name == "date" and text.startswith("0000")):
        assert CHECKERS[name](text)


@given(st.dates(), st.times())
def test_every_day_and_time_is_matched(day: date, clock: time) -> None:
    assert matches(FORMATS["date"].pattern, day.isoformat())
    assert matches(FORMATS["date-time"].pattern, datetime.combine(day, clock).isoformat() + "Z")


@given(st.ip_addresses(v=6), st.ip_addresses(v=4), st.uuids())
def test_every_address_is_matched(six: ipaddress.IPv6Address, four: ipaddress.IPv4Address, one: uuid.UUID) -> None:
    assert [text for text in (six.compressed, six.exploded) if not matches(FORMATS["ipv6"].pattern, text)] == []
    assert matches(FORMATS["ipv4"].pattern, str(four))
    assert matches(FORMATS["uuid"].pattern, str(one))


@given(st.dates(min_value=date(1, 1, 1), max_value=date(9999, 12, 31)), st.integers(29, 32))
def test_no_day_beyond_a_month_is_matched(day: date, number: int) -> None:
    text = f"{day.year:04}-{day.month:02}-{number:02}"
    assert matches(FORMATS["date"].pattern, text) == CHECKERS["date"](text)
