"""Formats that backends enforce, and exact patterns for those that they only approximate.

A pattern may say less than its format (no leap seconds, upper-case `T` and `Z`), never more.
"""

from __future__ import annotations

_MONTH_DAY = r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
_LEAP_YEAR = r"(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = rf"(?:[0-9]{{4}}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29)"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

EXACT_PATTERNS: dict[str, str] = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}T{_TIME}$",
}

XGRAMMAR_FORMATS = frozenset({"uuid"})
"""xgrammar 0.2.8 compiles formats as it does patterns, wrongly where something is optional; `uuid` has nothing optional."""

LLGUIDANCE_FORMATS = frozenset({"duration", "email", "ipv4", "ipv6", "uuid", "uri"})
"""Formats of which llguidance 1.7.6 accepts no invalid instance of the official suite, and of which random outputs are valid."""
