"""What is worked out of a spec's schema before the library compiles it, as text that may travel to the process that does."""

from __future__ import annotations

import msgspec

from grammar_service.errors import InvalidGrammar
from grammar_service.guards.plan import Plan


class LibrarySource(msgspec.Struct, frozen=True):
    """`schema`: the JSON that the library enforces exactly, but for what the guard's `plan` is about; `is_lark`: a string of JSON, which is
    the same as Lark."""

    schema: msgspec.Raw
    plan: Plan | None
    is_lark: bool = False

    def to_text(self) -> str:
        return msgspec.json.encode(self).decode("utf-8")


_SOURCE = msgspec.json.Decoder(LibrarySource)


def read_source(text: str) -> LibrarySource:
    """Raises InvalidGrammar: it is none of `to_text`'s."""
    try:
        return _SOURCE.decode(text)
    except msgspec.MsgspecError as error:
        raise InvalidGrammar(f"not a library's source: {error}") from None
