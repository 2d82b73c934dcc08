"""Tool calls that stand between texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployments.constraints.tool_calls.tag_formats import either, json_arguments, sequence, text
from grammar_service.schema.json_text import Json
from grammar_service.tags.arguments import Conversion

PLAIN_NAME = re.compile(r"[\w.\-]+", re.ASCII)


@dataclass(frozen=True)
class CallFormat:
    """A call is what `begin` makes of the tool's name, the arguments, and `end`; `numbered` formats have the call's number between the
    beginning and this text. Calls are set apart by `separator`, and stand together between `opening` and `closing`.

    Free text must not have the texts `excluded`, which the parser would take for a call or a part of one, and strings of JSON arguments
    not the texts `marks`, the beginnings of what would end the call. `nothing_follows` the calls of an answer.

    Arguments are one JSON text, or literals of a `notation`, or each is written by the fields `members` of the format `arguments`, of which
    the parser makes values by its `conversion`. `suffixed`: names of marks that the model's vocabulary may have with a suffix.
    """

    begin: Callable[[str], str]
    end: str
    separator: str = "\n"
    opening: str = ""
    closing: str = ""
    numbered: str = ""
    trigger: str = ""
    excluded: tuple[str, ...] = ()
    nothing_follows: bool = False
    quotes_names: bool = True
    members: Mapping[str, Any] | None = None
    conversion: Conversion = Conversion.ALL_TYPES
    marks: tuple[str, ...] = ()
    suffixed: tuple[str, ...] = ()
    notation: str = ""

    @property
    def text_marks(self) -> tuple[str, ...]:
        """See `ToolFormat`. Short, since each of their characters costs compile time."""
        texts = (self.opening or self.trigger, *self.excluded)
        return tuple(dict.fromkeys(text[text.index("<") :][:5] for text in texts if "<" in text))

    def writes(self, name: str) -> bool:
        """Whether a tool of this name can be called."""
        return self.quotes_names or PLAIN_NAME.fullmatch(name) is not None

    def calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> dict[str, Any]:
        """One call or more and nothing else, as a format of structural tags; `tools` are names with the schemas of their arguments, None:
        any."""
        return self._with_suffix(self._calls(tools, single))

    def text_with_calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> dict[str, Any]:
        """Free text, with calls or without."""
        tags = [self._calls(tools, single)] if self.opening else [self._call(name, schema) for name, schema in tools]
        excludes = {"excludes": list(self.excluded)} if self.excluded else {}
        # The parser takes the mark for the beginning of calls, whatever is behind it.
        trigger = self.opening.rstrip("\n") or self.trigger
        only_one = single or self.nothing_follows
        return self._with_suffix({"type": "triggered_tags", "triggers": [trigger], "tags": tags, "stop_after_first": only_one, **excludes})

    def answer_or_calls(self, answer: dict[str, Any], tools: Sequence[tuple[str, Json]], single: bool) -> dict[str, Any]:
        """Calls, or else an answer of this format."""
        return either(self.calls(tools, single), answer)

    def _with_suffix(self, content: dict[str, Any]) -> dict[str, Any]:
        return {"type": "suffixed", "marks": list(self.suffixed), "content": content} if self.suffixed else content

    def _calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> dict[str, Any]:
        tags = [self._call(name, schema) for name, schema in tools]
        calls = {"type": "tags_with_separator", "tags": tags, "separator": self.separator, "at_least_one": True, "stop_after_first": single}
        return {"type": "tag", "begin": self.opening, "content": calls, "end": self.closing} if self.opening else calls

    def _call(self, name: str, schema: Json) -> dict[str, Any]:
        content = self._arguments(schema)
        if self.numbered:
            number = {"type": "regex", "pattern": "[0-9]{1,3}"}
            content = sequence(number, text(self.numbered), content)
        return {"type": "tag", "begin": self.begin(name), "content": content, "end": self.end}

    def _arguments(self, schema: Json) -> dict[str, Any]:
        if self.notation:
            return {"type": "literals", "json_schema": {"type": "object"} if schema is None else schema, "notation": self.notation}
        if self.members is None:
            excludes = {"excludes": list(self.marks)} if self.marks else {}
            return {**json_arguments(schema), **excludes}
        if schema is None:
            # Where calls stand together, most parsers read none of them if one has anything but arguments.
            is_read_alone = not self.nothing_follows or "after_closing_name" in self.members
            return {"type": "any_text"} if is_read_alone else _any_arguments(self.members)
        return {"type": "arguments", "json_schema": schema, **self.members, "conversion": self.conversion.value}


def _any_arguments(members: Mapping[str, Any]) -> dict[str, Any]:
    """Texts of arguments with any names."""
    marks = [mark for mark in members["excludes"] if mark.startswith("<")]
    name, value = {"type": "regex", "pattern": r"[^<>\s]+"}, {"type": "any_text", "excludes": marks}
    before_name, before_value, after_value = (text(members[field]) for field in ("before_name", "before_string", "after_value"))
    return {"type": "star", "content": sequence(before_name, name, before_value, value, after_value)}
