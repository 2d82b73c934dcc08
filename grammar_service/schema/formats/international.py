"""Internationalised host names (RFC 5890 to 5893) and mailboxes (RFC 6531), as far as an automaton of bearable size can tell.

Of labels that are not ASCII, those of up to LONGEST letters and digits of one direction; of names, those of up to four labels. No label has
"--", and none begins with "xn--". Left out are marks, joiners, and characters that RFC 5892 allows in a context only.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from grammar_service.regexes.classes import CodePoints, Range
from grammar_service.regexes.properties import code_points_with
from grammar_service.regexes.rendering import character_class
from grammar_service.schema.formats.addresses import LITERAL

LONGEST = 9
"""Of the 63 octets of a label, n characters up to U+FFFF take at most 4 + n(2 + log₁₀ d) in Punycode (RFC 3492), d being the mean of the
steps that it counts: at most (n + 1) / n times the last code point."""
_DOT = "[.\u3002\uff0e\uff61]"
_SPECIAL = {
    *"\u00b7\u0375\u05f3\u05f4\u30fb\u0640\u07fa\u302e\u302f\u3031\u3032\u3033\u3034\u3035\u303b",
    *map(chr, range(0x660, 0x66A)),
    *map(chr, range(0x6F0, 0x6FA)),
}
"""Disallowed by RFC 5892, or only in a context."""
_ALWAYS = frozenset("\u00df\u03c2\u06fd\u06fe\u0f0b\u3007")
_KINDS = frozenset({"Ll", "Lo", "Lm", "Nd"})
_JAMO = [*range(0x1100, 0x1200), *range(0xA960, 0xA980), *range(0xD7B0, 0xD800)]


@lru_cache(maxsize=1)
def _valid() -> dict[str, CodePoints]:
    """RFC 5892's PVALID without ASCII and marks, of what Unicode's normal form C leaves alone wherever it stands; by the class of RFC
    5893."""
    every = [chr(point) for point in range(0x80, 0xFFFE) if not 0xD800 <= point <= 0xDFFF]
    parts = (unicodedata.decomposition(char).split() for char in every)
    combining = {chr(int(part[1], 16)) for part in parts if len(part) == 2 and not part[0].startswith("<")}
    excluded = _SPECIAL | combining | {chr(point) for point in _JAMO}
    ignorable = code_points_with("Default_Ignorable_Code_Point", None)
    found: dict[str, list[Range]] = {}
    for char in every:
        if char not in excluded and (char in _ALWAYS or _is_stable(char, ignorable)):
            found.setdefault(unicodedata.bidirectional(char), []).append((ord(char), ord(char)))
    return {kind: CodePoints.of(ranges) for kind, ranges in found.items()}


def _is_stable(char: str, ignorable: CodePoints) -> bool:
    """RFC 5892's "LetterDigits" but marks, that are not "Unstable" and not "IgnorableProperties"."""
    if unicodedata.category(char) not in _KINDS or ord(char) in ignorable:
        return False
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())
    return unicodedata.normalize("NFKC", folded) == char == unicodedata.normalize("NFC", char)


def _letters(*bidi: str) -> str:
    """Letters and digits of these classes of RFC 5893."""
    return character_class(CodePoints.of(one for kind in bidi for one in _valid()[kind].ranges))


def _listed(*labels: str) -> str:
    listed = "|".join(labels)
    return f"(?:{listed})(?:{_DOT}(?:{listed})){{0,3}}"


def _host() -> str:
    """Up to four labels; beside right-to-left ones RFC 5893 wants others to begin with a letter."""
    left, right = _letters("L"), _letters("R", "AL")
    plain = _listed(rf"(?:{left}|[a-z0-9]){{1,{LONGEST}}}", "[A-Za-z0-9](?:-?[A-Za-z0-9]){0,22}")
    beside_right = _listed(f"{right}{{1,{LONGEST}}}", f"{left}{{1,{LONGEST}}}", "[A-Za-z](?:-?[A-Za-z0-9]){0,22}")
    return f"{plain}|{beside_right}"


@lru_cache(maxsize=1)
def idn_hostname() -> str:
    return rf"^(?!(?:.*{_DOT})?[0-9]+$)(?:{_host()})$"


_ATEXT = r"A-Za-z0-9!#$%&'*+/=?^_`{|}~\-"
_MORE = r"\u0080-\u{10FFFF}"
_LOCAL = "|".join(
    (
        rf"[{_ATEXT}]{{1,64}}",
        rf"[{_ATEXT}](?:\.?[{_ATEXT}]){{0,30}}",
        rf"[{_ATEXT}{_MORE}](?:\.?[{_ATEXT}{_MORE}]){{0,7}}",
        rf'"(?:[ !#-\[\]-~{_MORE}]|\\[ -~]){{0,15}}"',
    )
)
"""Up to 64 octets in UTF-8."""


@lru_cache(maxsize=1)
def idn_email() -> str:
    return f"^(?:{_LOCAL})@(?:{_host()}|{LITERAL})$"
