"""Reads the arguments of one tool call in pieces, as JSON. Pure, and linear in their length."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol

import regex

_NAME = regex.compile(r"[,\s]*(?:(?P<end>\))|(?P<name>[^=),\s][^=)]*)=)")
_VALUE = regex.compile(
    r"""(?P<opening>[\[{])|(?P<closing>[\]}])|(?P<comma>,)|(?P<end>\))|(?P<quote>["'])|(?P<word>[A-Za-z]+)(?=[^A-Za-z])"""
    r"""|(?P<other>[^\[\]{},)"'A-Za-z]+)"""
)
_IN_STRING = {quote: regex.compile(rf"(?P<quote>{quote})|\\(?P<escaped>.)|(?P<plain>[^\\{quote}]+)", regex.DOTALL) for quote in "\"'"}
_SURROGATE = regex.compile(r"[\ud800-\udfff]")
_QUOTE = "<escape>"
_UNQUOTED = regex.compile(r"(?P<quote><escape>)|(?P<opening>[{\[])|(?P<closing>[}\]])|(?P<comma>,)|(?P<other>[^<{}\[\],]+)")
_UNQUOTED_NAME = regex.compile(r"(?P<closing>\})|(?P<comma>,)|(?P<name>[^:{},]+):")
_SYMBOLS = {"None": "null", "True": "true", "False": "false"}
_ESCAPES = {"'": "'", '"': r"\"", "\\": r"\\", "n": r"\n", "r": r"\r", "t": r"\t"}


def with_escaped_surrogates(text: str) -> str:
    """JSON with halves of surrogate pairs, which no text can be sent with, as escapes."""
    escaped: str = _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
    return escaped


class ArgumentsReader(Protocol):
    def read(self, piece: str) -> tuple[str, str | None]:
        """The JSON that can be said of them by now, and the text behind their end; None: they go on."""


@dataclass
class JsonArguments:
    """Arguments in JSON, as they are written."""

    depth: int = 0
    in_string: bool = False
    is_escaped: bool = False

    def read(self, piece: str) -> tuple[str, str | None]:
        for place, character in enumerate(piece):
            if (last := self._last(character)) is not None:
                return piece[: place + last], piece[place + last :]
        return piece, None

    def _last(self, character: str) -> int | None:
        """Where the arguments end: 1 behind this character, 0 ahead of it (they are no object, and it closes the call); None: not here."""
        if self.in_string:
            self.in_string = self.is_escaped or character != '"'
            self.is_escaped = not self.is_escaped and character == "\\"
        elif character == '"':
            self.in_string = True
        elif character in "{[":
            self.depth += 1
        elif character in "}]":
            self.depth -= 1
            return min(self.depth + 1, 1) if self.depth < 1 else None
        return None


@dataclass
class PythonArguments:
    """Keyword arguments with literals of Python, or with JSON's names for None, True and False. `rest` waits for more text; `quote` is that
    of the string that is being read, and `depth` that of the value."""

    rest: str = ""
    quote: str = ""
    depth: int = 0
    expects_name: bool = True
    has_begun: bool = False

    def read(self, piece: str) -> tuple[str, str | None]:
        text, place, written = self.rest + piece, 0, list[str]()
        while (found := self._pattern().match(text, place)) is not None:
            place = found.end()
            written.append(self._json(found.lastgroup or "", found[found.lastgroup or 0]))
            if found.lastgroup == "end" and not self.depth:
                return "".join(written), text[place:]
        self.rest = text[place:]
        return "".join(written), None

    def _pattern(self) -> regex.Pattern[str]:
        return _IN_STRING[self.quote] if self.quote else _NAME if self.expects_name else _VALUE

    def _json(self, kind: str, text: str) -> str:
        match kind:
            case "name":
                before = ", " if self.has_begun else "{"
                self.expects_name, self.has_begun = False, True
                return f"{before}{json.dumps(text, ensure_ascii=False)}: "
            case "end" if not self.depth:
                return "}" if self.has_begun else "{}"
            case "comma" if not self.depth:
                self.expects_name = True
                return ""
            case "quote":
                self.quote = "" if self.quote else text
                return '"'
            case "escaped":
                return _ESCAPES.get(text) or json.dumps("\\" + text)[1:-1]
            case "plain":
                return json.dumps(text, ensure_ascii=False)[1:-1]
            case "opening" | "closing":
                self.depth += 1 if kind == "opening" else -1
        return _SYMBOLS.get(text, text)


@dataclass
class EscapedArguments:
    """Arguments of FunctionGemma: JSON with names that have no quotes, and strings, which have no escapes, between two marks. `rest` waits
    for more text; `levels` are the containers around it."""

    rest: str = ""
    in_string: bool = False
    levels: str = ""
    expects_name: bool = True

    def read(self, piece: str) -> tuple[str, str | None]:
        text, place, written = self.rest + piece, 0, list[str]()
        if not self.levels:
            self.levels = "{"
            written.append("{")
        while self.levels and (found := self._next(text, place)) is not None:
            kind, value, place = found
            written.append(self._json(kind, value))
        self.rest = text[place:]
        return "".join(written), None if self.levels else self.rest

    def _next(self, text: str, place: int) -> tuple[str, str, int] | None:
        """What comes at this place, and where it ends; None: more text is needed."""
        if self.in_string:
            return self._in_string(text, place)
        found = (_UNQUOTED_NAME if self.expects_name else _UNQUOTED).match(text, place)
        return (found.lastgroup or "", found[found.lastgroup or 0], found.end()) if found else None

    @staticmethod
    def _in_string(text: str, place: int) -> tuple[str, str, int] | None:
        end = text.find(_QUOTE, place)
        if end == place:
            return "quote", _QUOTE, place + len(_QUOTE)
        if end < 0:
            tails = range(max(place, len(text) - len(_QUOTE) + 1), len(text))
            end = next((start for start in tails if _QUOTE.startswith(text[start:])), len(text))
        return ("plain", text[place:end], end) if end > place else None

    def _json(self, kind: str, text: str) -> str:
        match kind:
            case "name":
                self.expects_name = False
                return f"{json.dumps(text, ensure_ascii=False)}: "
            case "quote":
                self.in_string = not self.in_string
                return '"'
            case "plain":
                return json.dumps(text, ensure_ascii=False)[1:-1]
            case "opening":
                self.levels, self.expects_name = self.levels + text, text == "{"
            case "closing":
                self.levels, self.expects_name = self.levels[:-1], False
            case "comma":
                self.expects_name = self.levels.endswith("{")
                return ", "
        return text
