"""Which Lark grammars llguidance is given."""

from __future__ import annotations

import re

from grammar_service.backends.llguidance.load_cost import MAX_TEXT
from grammar_service.limits import MAX_COUNT
from grammar_service.schema.fault import Fault

_COUNT = r"\{\s*+(\d*+)\s*+(?:,\s*+(\d*+)\s*+)?\}|~\s*+(\d++)(?:\s*+\.\.\s*+(\d++))?"
_COUNTS = re.compile(_COUNT)
_QUOTED_OR_COUNT = re.compile(rf'{_COUNT}|"(?:[^"\\\n]|\\.)*+(?P<end>"?)')
_MAX_DIGITS = len(str(MAX_COUNT))


def lark_faults(text: str) -> list[Fault]:
    """What would weaken a constraint, or hurt the engine that loads it. Linear time.

    `%json` is refused wherever it stands, a string included: its schema would be read by the library's own rules.
    """
    if text.lstrip().startswith("{"):
        return [Fault(None, "a Lark grammar begins with a rule: llguidance reads text that begins with a brace as its own JSON format")]
    if "%json" in text:
        return [Fault(None, "`%json` is not supported in Lark, where its schema is not enforced exactly: use kind json_schema")]
    for match in _QUOTED_OR_COUNT.finditer(text):
        if len(match.group().encode("utf-8", "surrogatepass")) > MAX_TEXT:
            return [Fault(None, f"a text of more than {MAX_TEXT} bytes is too long for its masks")]
        # An unclosed quote may stand in a regex, with counts after it.
        counts = _COUNTS.finditer(match.group()) if match["end"] == "" else [match]
        if exceeding := next(filter(_exceeds_max_count, counts), None):
            return [Fault(None, f"repetition counts above {MAX_COUNT} are not supported: {exceeding.group()[:40]}")]
    return []


def _exceeds_max_count(match: re.Match[str]) -> bool:
    return any(len(digits.lstrip("0")) > _MAX_DIGITS or int(digits) > MAX_COUNT for digits in filter(None, match.groups()[:4]))
