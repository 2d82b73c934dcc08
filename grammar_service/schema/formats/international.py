"""Internationalised host names (RFC 5890 to 5893) and mailboxes (RFC 6531), as far as an automaton of bearable size can tell.

Of labels that are not ASCII, those of up to LONGEST characters of the forms below; of names with such labels, those of up to four. No label
has "--", and none begins with "xn--". Marks are left out where they stand behind marks or may combine with what stands before them.
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
_SPECIAL = {*"\u00b7\u0375\u05f3\u05f4\u30fb\u0640\u07fa\u302e\u302f\u3031\u3032\u3033\u3034\u3035\u303b", *map(chr, range(0x660, 0x66A))}
"""Disallowed by RFC 5892, or only in a context; U+06F0 to U+06F9 are digits beside no others and so need none."""
_ALWAYS = frozenset("\u00df\u03c2\u06fd\u06fe\u0f0b\u3007")
_KINDS = frozenset({"Ll", "Lo", "Lm", "Nd", "Mn", "Mc"})
_JAMO = [*range(0x1100, 0x1200), *range(0xA960, 0xA980), *range(0xD7B0, 0xD800)]


@lru_cache(maxsize=1)
def _valid() -> dict[tuple[str, bool], CodePoints]:
    """RFC 5892's PVALID without ASCII, of what Unicode's normal form C leaves alone wherever it stands; by the class of RFC 5893, marks
    apart."""
    every = [chr(point) for point in range(0x80, 0xFFFE) if not 0xD800 <= point <= 0xDFFF]
    parts = (unicodedata.decomposition(char).split() for char in every)
    combining = {chr(int(part[1], 16)) for part in parts if len(part) == 2 and not part[0].startswith("<")}
    excluded = _SPECIAL | combining | {chr(point) for point in _JAMO}
    ignorable = code_points_with("Default_Ignorable_Code_Point", None)
    found: dict[tuple[str, bool], list[Range]] = {}
    for char in every:
        if char not in excluded and (char in _ALWAYS or _is_stable(char, ignorable)):
            kind = unicodedata.bidirectional(char), unicodedata.category(char).startswith("M")
            found.setdefault(kind, []).append((ord(char), ord(char)))
    return {kind: CodePoints.of(ranges) for kind, ranges in found.items()}


def _is_stable(char: str, ignorable: CodePoints) -> bool:
    """RFC 5892's "LetterDigits" that are not "Unstable" and not "IgnorableProperties"."""
    if unicodedata.category(char) not in _KINDS or ord(char) in ignorable:
        return False
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())
    return unicodedata.normalize("NFKC", folded) == char == unicodedata.normalize("NFC", char)


def _letters(*bidi: str, script: str = "") -> str:
    """Letters and digits of these classes of RFC 5893."""
    return _class(bidi, False, script)


def _marks(*bidi: str) -> str:
    return _class(bidi, True, "")


def _class(bidi: tuple[str, ...], marks: bool, script: str) -> str:
    chosen = CodePoints.of(one for kind in bidi for one in _valid()[kind, marks].ranges)
    if script:
        # Neither outside the one nor outside the other.
        outside = (one.complement().ranges for one in (chosen, code_points_with("Script", script)))
        chosen = CodePoints.of(one for ranges in outside for one in ranges).complement()
    return character_class(chosen)


def _left_to_right(letter: str) -> list[str]:
    """Labels of left-to-right letters."""
    greek, kana = _letters("L", script="Greek"), [_letters("L", script=script) for script in ("Hiragana", "Katakana", "Han")]
    indic = _letters("L", script="Devanagari")
    return [
        rf"(?:{letter}{_marks('L', 'NSM')}?){{1,4}}",
        rf"{letter}{{1,9}}",
        rf"{letter}{{1,4}}-{letter}{{1,4}}",
        rf"{indic}{{1,2}}\u094D[\u200C\u200D]{indic}{{1,4}}",
        r"[a-z]{0,3}l\u00B7l[a-z]{0,3}",
        rf"{greek}{{1,3}}\u0375{greek}{{1,4}}",
        rf"\u30FB{{0,2}}(?:{'|'.join(kana)}){{1,4}}\u30FB{{0,2}}",
    ]


def _right_to_left() -> list[str]:
    letter, mark, hebrew = _letters("R", "AL"), _marks("NSM"), _letters("R", script="Hebrew")
    return [
        rf"(?:{letter}{mark}?){{1,4}}",
        rf"{letter}{{1,9}}",
        rf"{letter}{{1,4}}-{letter}{{1,4}}",
        rf"{letter}{{1,4}}(?:[0-9]{{1,4}}|[\u0660-\u0669]{{1,4}}){letter}?",
        rf"{hebrew}{{1,4}}[\u05F3\u05F4]{hebrew}{{0,4}}",
    ]


def _listed(*labels: str) -> str:
    listed = "|".join(labels)
    return f"(?:{listed})(?:{_DOT}(?:{listed})){{0,3}}"


def _host() -> str:
    """Up to four labels; beside right-to-left ones RFC 5893 wants others to begin with a letter."""
    letter = _letters("L")
    plain = [*_left_to_right(f"(?:{letter}|[a-z0-9\u06f0-\u06f9])"), "[A-Za-z0-9](?:-?[A-Za-z0-9]){0,22}"]
    beside_right = [*_right_to_left(), f"{letter}{{1,9}}", "[A-Za-z](?:-?[A-Za-z0-9]){0,22}"]
    return f"{_listed(*plain)}|{_listed(*beside_right)}"


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
