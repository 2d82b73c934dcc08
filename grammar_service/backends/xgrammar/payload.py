"""What travels of a grammar that xgrammar has compiled: always its recipe, and its tables where they are worth it."""

from __future__ import annotations

import msgspec

from grammar_service.backends.xgrammar.recipe import Recipe
from grammar_service.errors import ArtifactError
from grammar_service.guards.plan import Plan
from grammar_service.packing import pack, unpack


class XgrammarPayload(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """`version` is that of the backend that wrote it. `text` (the recipe's) and `tables` (the library's serialization) are packed.
    `recursion_tail`: whether forced text may be looked for (`runs.py`). `plan`: of the guard. `names_tokens`: the recipe's."""

    version: str
    kind: str
    whitespace: str
    text: bytes
    tables: bytes | None
    recursion_tail: int | None
    plan: Plan | None
    names_tokens: bool = False

    def recipe(self, max_bytes: int) -> Recipe:
        """Raises ArtifactError as `unpack` does."""
        return Recipe(self.kind, unpack(self.text, max_bytes), self.whitespace, self.plan, self.names_tokens)


_PAYLOAD = msgspec.msgpack.Decoder(XgrammarPayload)


def write_payload(version: str, recipe: Recipe, tables: str | None, recursion_tail: int | None) -> bytes:
    """The bytes of a payload; `tables` None leaves only the recipe."""
    packed = None if tables is None else pack(tables)
    text, plan, tokens = pack(recipe.text), recipe.plan, recipe.names_tokens
    payload = XgrammarPayload(version, recipe.kind, recipe.whitespace, text, packed, recursion_tail, plan, tokens)
    return msgspec.msgpack.encode(payload)


def read_payload(data: bytes, version: str) -> XgrammarPayload:
    """Raises ArtifactError: not a payload, or one of another version."""
    try:
        payload = _PAYLOAD.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ArtifactError(f"the payload cannot be read: {error}") from None
    if payload.version != version:
        raise ArtifactError(f"the payload is of version {payload.version[:80]}, not {version}")
    return payload
