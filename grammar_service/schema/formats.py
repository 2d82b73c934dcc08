"""Formats that backends enforce, and exact patterns for those that they only approximate.

A pattern may say less than its format (no leap seconds, upper-case `T` and `Z`, no addresses in brackets), never more.
"""

from __future__ import annotations

_MONTH_DAY = r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
_LEAP_YEAR = r"(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = rf"(?:[0-9]{{4}}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29)"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

_LABEL = r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,30}"
_HOSTNAME = rf"(?:{_LABEL}(?:\.{_LABEL}){{0,3}}|[A-Za-z0-9]{{1,20}}(?:\.[A-Za-z0-9]{{1,20}}){{0,11}})"
"""Labels of up to 63 characters without "--", in all up to 253."""
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-]+"
_POINTER = r"(?:/(?:[^/~]|~[01])*)*"
_UCS = r"\u00A0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF"


def _reference(more: str) -> tuple[str, str]:
    """RFC 3986's URI and relative reference, or RFC 3987's with `more` characters; hosts are names."""
    plain = rf"[A-Za-z0-9\-._~!$&'()*+,;={more}]|%[0-9A-Fa-f]{{2}}"
    path_char = rf"(?:{plain}|[:@])"
    authority = rf"//(?:(?:{plain}|:)*@)?(?:{plain})*(?::[0-9]*)?"
    tail = rf"(?:\?(?:{plain}|[:@/?])*)?(?:#(?:{plain}|[:@/?])*)?"
    absolute = rf"/(?:{path_char}+(?:/{path_char}*)*)?"
    rooted = rf"(?:{authority}(?:/{path_char}*)*|{absolute})"
    uri = rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:{rooted}|{path_char}+(?:/{path_char}*)*)?{tail}"
    return uri, rf"(?:{rooted}|(?:{plain}|@)+(?:/{path_char}*)*)?{tail}"


_URI, _RELATIVE = _reference("")
_IRI, _RELATIVE_IRI = _reference(_UCS)
_NAME = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*"
_VARIABLE = rf"{_NAME}(?:\*|:[1-9][0-9]{{0,3}})?"
_TEMPLATE = rf"(?:[A-Za-z0-9!#$&()*+,\-./:;=?@\[\]_~]|%[0-9A-Fa-f]{{2}}|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"

EXACT_PATTERNS: dict[str, str] = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}T{_TIME}$",
    "hostname": f"^{_HOSTNAME}$",
    "idn-hostname": f"^{_HOSTNAME}$",
    "idn-email": rf"^{_ATOM}(?:\.{_ATOM})*@{_HOSTNAME}$",
    "json-pointer": f"^{_POINTER}$",
    "relative-json-pointer": rf"^(?:0|[1-9][0-9]*)(?:#|{_POINTER})$",
    "uri-reference": rf"^(?:{_URI}|{_RELATIVE})$",
    "iri": f"^{_IRI}$",
    "iri-reference": rf"^(?:{_IRI}|{_RELATIVE_IRI})$",
    "uri-template": f"^{_TEMPLATE}$",
}

XGRAMMAR_FORMATS = frozenset({"uuid"})
"""xgrammar 0.2.8 compiles formats as it does patterns, wrongly where something is optional; `uuid` has nothing optional."""

LLGUIDANCE_FORMATS = frozenset({"duration", "email", "ipv4", "ipv6", "uuid", "uri"})
"""Formats of which llguidance 1.7.6 accepts no invalid instance of the official suite, and of which random outputs are valid."""
