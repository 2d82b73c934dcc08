"""Regexes of ECMA-262 with its `u` flag: those of few features, in groups up to three deep, which no automaton can tell beyond that."""

from __future__ import annotations

DEPTH = 3

_RANGES = "a-z|A-Z|0-9|a-f|A-F|1-9|0-7|A-F|1-5"
_ESCAPED = r"\\(?:[\^$\\.*+?()\[\]{}|/dDsSwWfnrtv]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u(?:[0-9A-CEFa-cef][0-9A-Fa-f]|[Dd][0-7])[0-9A-Fa-f]{2})"
_CLASS = rf"\[\^?-?(?:{_RANGES}|[^\\\]\-]|{_ESCAPED}|\\-)*-?\]"
_ATOM = rf"(?:[^\^$\\.*+?()\[\]{{}}|]|\.|{_ESCAPED}|{_CLASS}"
_COUNTS = "|".join(
    ["[0-9]{1,9},?", "0,[0-9]{1,9}", "1,[1-9][0-9]{0,8}", *(f"{low},(?:[{low}-9]|[1-9][0-9]{{1,8}})" for low in range(2, 10))]
)
_QUANTIFIER = rf"(?:(?:[*+?]|\{{(?:{_COUNTS})\}})\??)?"
_EDGE = r"\^|\$|\\[bB]|\|"


def _of_depth(depth: int) -> str:
    group = rf"|\((?:\?:)?{_of_depth(depth - 1)}\)" if depth else ""
    return f"(?:{_EDGE}|{_ATOM}{group}){_QUANTIFIER})*"


_FLAT = _of_depth(0)
REGEX = rf"^(?:\(\?<?[=!]{_FLAT}\))*{_of_depth(DEPTH)}$"
"""Without back-references, names of groups (which must differ), look-around but at the start, and Unicode properties; of ranges in
classes only those that are often written, since the order of any two characters is too much to tell."""
