"""GBNF as llama.cpp reads it (its `grammars/README.md`), in the words that xgrammar has for it (0.2.8: `cpp/grammar_parser.cc`)."""

from __future__ import annotations

import re

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|\[(?:[^\]\\\n]|\\.)*+\]?|#[^\n]*+|\s++|::=|[\w.-]++|.', re.DOTALL)
_BRACKET = re.compile(r"\\(?:([\[\]])|.)", re.DOTALL)
_OPENS = frozenset({"::=", "(", "|"})
"""An alternative that begins after one of these has nothing in front of it."""
_EMPTY = '""'
_ANY, _EVERY_CHARACTER = ".", r"[\x00-\U0010FFFF]"


def plain_gbnf(text: str) -> str:
    """The same grammar, with what the library has no words for said in its own: alternatives of nothing beside others (`ws ::= | " " ws`),
    `.` for any character, and square brackets that are escaped in a literal. A text that needs none of that comes back as it is; one that
    is no grammar, for the library to refuse, on the lines that it has."""
    written: list[str] = []
    before = ""
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token.isspace() or token.startswith("#"):
            written.append(token)
            continue
        if (token == "|" and before in _OPENS) or (token == ")" and before == "|"):
            written.append(_EMPTY)
        written.append(_plain(token))
        before = token
    return "".join(written)


def _plain(token: str) -> str:
    if token == _ANY:
        return _EVERY_CHARACTER
    return _BRACKET.sub(lambda match: match[1] or match[0], token) if token.startswith('"') else token
