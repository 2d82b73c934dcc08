"""Dates, times and durations of RFC 3339."""

from __future__ import annotations

_MONTH_DAY = r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
_LEAP_YEAR = r"(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_FULL_DATE = rf"(?:[0-9]{{4}}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29)"
_HOUR_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_FRACTION = r"(?:\.[0-9]+)?"
_OFFSET = rf"(?:[Zz]|[+\-]{_HOUR_MINUTE})"
_LEAP_SECOND = rf"23:59:60{_FRACTION}(?:[Zz]|[+\-]00:00)"
_FULL_TIME = rf"{_HOUR_MINUTE}:[0-5][0-9]{_FRACTION}{_OFFSET}"
_ANY_TIME = rf"{_HOUR_MINUTE}:(?:[0-5][0-9]|60){_FRACTION}{_OFFSET}"

DATE = f"^{_FULL_DATE}$"
TIME = f"^(?:{_FULL_TIME}|{_LEAP_SECOND})$"
"""Leap seconds at offset 0 only: with others it would take an automaton of a thousand states to tell the right minute."""
MAYBE_TIME = f"^{_ANY_TIME}$"
DATE_TIME = rf"^(?:{_FULL_DATE}[Tt]{_FULL_TIME}|[0-9]{{4}}-(?:06-30|12-31)[Tt]{_LEAP_SECOND})$"
MAYBE_DATE_TIME = f"^{_FULL_DATE}[Tt]{_ANY_TIME}$"

_SECONDS = "[0-9]+S"
_MINUTES = f"[0-9]+M(?:{_SECONDS})?"
_TIME_PART = f"T(?:[0-9]+H(?:{_MINUTES})?|{_MINUTES}|{_SECONDS})"
_DAYS = "[0-9]+D"
_MONTHS = f"[0-9]+M(?:{_DAYS})?"
DURATION = f"^P(?:(?:[0-9]+Y(?:{_MONTHS})?|{_MONTHS}|{_DAYS})(?:{_TIME_PART})?|{_TIME_PART}|[0-9]+W)$"
