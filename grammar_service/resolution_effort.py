"""Which specs are resolved so quickly that an event loop may do it; all others belong into the sandbox, where a deadline holds."""

from __future__ import annotations

import re

from grammar_service.schema.dialects.dialect import UNNAMED
from grammar_service.spec import GrammarKind, GrammarSpec

QUICK_SCHEMA = 1024
"""Characters of a schema that is resolved in under 10 ms if it has quick keywords alone: rules of an object are compared pair by pair."""
QUICK_REGEX = 1024
QUICK_TEXT = 16_384
"""Characters of a grammar or of choices, which are read in proportion to their length."""
QUICK_KEYWORDS = frozenset(
    "type enum const properties required additionalProperties items anyOf $ref $defs definitions minimum maximum minItems maxItems "
    "minLength maxLength format nullable".split()
)
"""Those whose work is in proportion to their text. The others combine schemas, or compare patterns."""
_SLOW_VALUES = re.compile(r'"(?:enum|const)"\s*:\s*(?:\[[^]]*)?[\[{]|"additionalProperties"\s*:\s*\{')
"""Objects and arrays among values are compared with the schemas around them, and so are other properties with those that have names."""
_WORD = re.compile(r'"([$\w]{1,24})"', re.ASCII)


def resolves_quickly(spec: GrammarSpec) -> bool:
    """Whether `resolve` takes under 10 ms of a processor, whatever a hostile sender has made of the spec."""
    match spec.kind:
        case GrammarKind.JSON_OBJECT:
            return True
        case GrammarKind.JSON_SCHEMA:
            return len(spec.text) <= QUICK_SCHEMA and "\\" not in spec.text and not _is_slow(spec.text)
        case GrammarKind.REGEX:
            return len(spec.text) <= QUICK_REGEX
        case GrammarKind.STRUCTURAL_TAG:  # there are schemas in it
            return False
        case _:
            return len(spec.text) <= QUICK_TEXT


def _is_slow(text: str) -> bool:
    return _SLOW_VALUES.search(text) is not None or not _SLOW_KEYWORDS.isdisjoint(_WORD.findall(text))


_SLOW_KEYWORDS = UNNAMED.known - QUICK_KEYWORDS
