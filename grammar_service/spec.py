"""What a user asks for: one constraint, before any backend has looked at it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

FLEXIBLE = "flexible"
STANDARD = "standard"
COMPACT = "compact"
INDENT_PREFIX = "indent:"
MAX_INDENT = 16
MAX_WHITESPACE = 32
"""Characters in one run of "flexible" whitespace. Small models fall into endless whitespace where a grammar lets them; 32 leave room
for a line break and an indentation of seven levels of four."""


HARMONY, KIMI_K3 = "harmony", "kimi_k3"


class GrammarKind(StrEnum):
    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    REGEX = "regex"
    CHOICE = "choice"
    EBNF = "ebnf"
    LARK = "lark"
    STRUCTURAL_TAG = "structural_tag"


JSON_KINDS = frozenset({GrammarKind.JSON_SCHEMA, GrammarKind.JSON_OBJECT})
"""Kinds whose output is a JSON text."""
SPACED_KINDS = JSON_KINDS | {GrammarKind.STRUCTURAL_TAG}
"""Kinds whose output holds JSON, so that `whitespace` means something."""
SCHEMA_KINDS = frozenset({GrammarKind.JSON_SCHEMA, GrammarKind.STRUCTURAL_TAG})
"""Kinds that hold a JSON Schema, so that `closed` and `formats` mean something."""


@dataclass(frozen=True, slots=True)
class GrammarSpec:
    """One constraint as the user wrote it.

    `text` is JSON for json_schema, choice (an array of strings) and structural_tag; the source for regex, ebnf and lark; empty
    for json_object. `whitespace` matters for the JSON kinds, and for the JSON inside structural tags: "flexible" (runs of up to
    MAX_WHITESPACE spaces, tabs and line breaks between tokens), "standard" (as `json.dumps`: ", " and ": "), "compact" (none),
    "indent:N" (as `json.dumps(indent=N)`). `closed` matters for json_schema and structural_tag: what a schema leaves unsaid is not
    allowed (see `schema.normal_form`); False means what JSON Schema means. `formats` matters for the same kinds: `format` is an assertion;
    False: an annotation. `refuses_unknown`: a schema with a keyword that its dialect does not know is refused, instead of a warning (the
    grammar is the same, and so is its key). `canonical`: of the token sequences of a text only the tokenizer's own one is allowed.
    `any_order` matters for json_schema: members of an object come in whatever order the model likes, where that can be enforced
    (`backends.llguidance.any_order`), else in that of `properties`. `channels`: the text stands in a channel of this format, HARMONY
    (gpt-oss, in `final`) or KIMI_K3 (in `response`); empty: in none.
    """

    kind: GrammarKind
    text: str
    whitespace: str = STANDARD
    closed: bool = True
    refuses_unknown: bool = False
    formats: bool = True
    canonical: bool = False
    any_order: bool = False
    channels: str = ""


def indent_of(whitespace: str) -> int | None:
    """N of "indent:N", None for the other whitespace options.

    Raises:
        ValueError: it is none of the options.
    """
    if whitespace in (FLEXIBLE, STANDARD, COMPACT):
        return None
    digits = whitespace.removeprefix(INDENT_PREFIX)
    if digits == whitespace or not digits.isascii() or not digits.isdigit() or len(digits) > 2 or int(digits) > MAX_INDENT:
        raise ValueError(f"whitespace must be flexible, standard, compact or indent:0 to indent:{MAX_INDENT}, not {whitespace[:40]!r}")
    return int(digits)
