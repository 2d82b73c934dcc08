"""The members of a format `arguments` as formats of the library (`tags.structural_tag`, `tags.arguments`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.string_set import StringSet
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.json_text import Json
from grammar_service.schema.pointer import join
from grammar_service.tags.arguments import Conversion, Member
from grammar_service.tags.fields import Object, strings_of
from grammar_service.tags.raw_strings import of_characters, raw_string, text_format

LONGEST_BESIDE_TOKENS = 64
"""Characters of a string. Each takes 40 ms to compile on 131,072 tokens."""
_NOTHING: tuple[str, ...] = ()
_PLAIN, _SECTION = (_NOTHING, ("<", "&", "\n"), _NOTHING), (("<![CDATA[",), ("]]>",), ("]]>",))
_BOUNDED = (_NOTHING, ("<",), _NOTHING)
"""What is ahead of a string that may stand in a CDATA section, what is not in it, and what is behind it."""


class MemberWriter:
    """Of one format, with these `fields`. `beside_tokens`: it stands in a tag with special tokens, which the library's free text would
    have too. `ends`: what ends the tag around it. `mark` makes a format of a mark's text, `to_json` one of a member's name and a schema.

    Raises UnsupportedGrammar, with a pointer into the schema.
    """

    def __init__(
        self,
        fields: Object,
        beside_tokens: bool,
        ends: Sequence[str],
        mark: Callable[[str], Json],
        to_json: Callable[[str, Object], Json],
    ) -> None:
        self._fields = fields
        self._beside_tokens = beside_tokens
        self._ends = tuple(ends)
        self._mark = mark
        self._to_json = to_json
        self._marks = strings_of(fields.get("marks"))
        self._excludes = tuple(strings_of(fields["excludes"]))

    def format(self, member: Member) -> Json:
        named, after = f"{self._fields['before_name']}{self._name(member)}", self._marked(self._after_value(member))
        ways = [[*self._marked(f"{named}{before}"), *value, *after] for before, value in self._ways(member)]
        if not ways:
            raise UnsupportedGrammar("the model's parser would read none of its strings as it is", _place(member))
        written: list[Json] = [{"type": "sequence", "elements": way} for way in ways]
        value: Json = written[0] if len(written) == 1 else {"type": "or", "elements": written}
        return value if member.is_required else {"type": "optional", "content": value}

    def _ways(self, member: Member) -> Iterator[tuple[str, list[Json]]]:
        """What is ahead of the value, and its formats."""
        before_string = str(self._fields["before_string"])
        for raw in self._raw_strings(member):
            yield before_string, raw
        before_json = before_string if member.is_verbatim else str(self._fields["before_json"])
        documents = [("", member.document)] if member.document is not None else []
        for kind, document in (*documents, *member.by_type):
            yield before_json.replace("{type}", kind) if kind else before_json, [self._to_json(member.name, document)]

    def _raw_strings(self, member: Member) -> Iterator[list[Json]]:
        """Those without quotes, as they stand and in a CDATA section, and those that need no escape in quotes."""
        if member.strings is not None:
            yield from self._without_quotes(member.strings, member)
        if member.quoted is not None and (raw := raw_string(member.quoted, self._excludes)) is not None:
            yield [text_format('"'), raw, text_format('"')]

    def _without_quotes(self, strings: Strings | StringSet, member: Member) -> Iterator[list[Json]]:
        bound = _bound(strings)
        if self._beside_tokens and bound > LONGEST_BESIDE_TOKENS:
            raise UnsupportedGrammar(f"lengths above {LONGEST_BESIDE_TOKENS} take too long to compile", _place(member))
        # Those of bounded length cost too much to have both.
        ways = ((_NOTHING,) * 3,) if not self._fields.get("cdata") else (_BOUNDED,) if bound else (_PLAIN, _SECTION)
        for begin, excluded, end in ways:
            raw = raw_string(strings, (*self._excludes, *excluded), member.mistaken_for)
            if raw is not None:
                yield [*map(text_format, begin), of_characters(raw) if self._beside_tokens else raw, *map(text_format, end)]

    def _name(self, member: Member) -> str:
        is_escaped = self._fields.get("conversion") == Conversion.WRITTEN_TYPES
        return member.name.replace("&", "&amp;") if is_escaped else member.name

    def _after_value(self, member: Member) -> str:
        after = str(self._fields["after_value"])
        if (behind_name := self._fields.get("after_closing_name")) is None:
            return after
        closing = f"{after}{member.name}{behind_name}"
        if member.name.startswith("/") or any(end.startswith(closing) for end in self._ends):
            raise UnsupportedGrammar(f"in this model's tool calls an argument cannot have the name {member.name[:40]!r}", _place(member))
        return closing

    def _marked(self, text: str) -> list[Json]:
        """A text as formats."""
        parts = re.split(f"({'|'.join(map(re.escape, self._marks))})", text) if self._marks else [text]
        return [self._mark(part) if part in self._marks else text_format(part) for part in parts if part]


def _place(member: Member) -> str:
    return join("", "properties", member.name)


def _bound(strings: Strings | StringSet) -> int:
    """The greater bound of their lengths, if nothing else is asked of them, or else 0."""
    if not isinstance(strings, Strings) or strings != Strings(strings.least, strings.most):
        return 0
    return max(strings.least, strings.most or 0)
