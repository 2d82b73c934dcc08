"""A user's JSON Schema: parsed, checked, in normal form."""

from __future__ import annotations

from dataclasses import dataclass

from grammar_service.errors import InvalidGrammar, UnsupportedGrammar
from grammar_service.json_text import Json, parse_json, text_of
from grammar_service.pointer import join
from grammar_service.schema.keywords import IDENTIFIERS, KNOWN, is_annotation, walk
from grammar_service.schema.normal import Normaliser
from grammar_service.schema.references import References
from grammar_service.schema.shape import check_shape


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """`normal` is the normal form (see `schema.normal`), always an object; `references` belong to the user's own form."""

    normal: dict[str, Json]
    references: References

    def text(self) -> str:
        return text_of(self.normal)


def parse_schema(text: str) -> JsonSchema:
    """Read a JSON Schema (draft 2020-12).

    Raises:
        InvalidGrammar: not JSON, not a schema, a reference that leads nowhere, or a schema that nothing matches.
        UnsupportedGrammar: a keyword that nobody knows, a remote reference, an anchor or an embedded `$id`.
        GrammarTooLarge: nested too deep.
    """
    return schema_of(parse_json(text, "the schema"))


def schema_of(document: Json) -> JsonSchema:
    """The same for a schema that is already parsed."""
    check_shape(document)
    _refuse_unknown(document)
    references = References(document)
    normal = Normaliser(references).normal(document)
    if normal is False:
        raise InvalidGrammar("the schema `false` matches nothing", "")
    return JsonSchema(normal if isinstance(normal, dict) else {}, references)


def _refuse_unknown(document: Json) -> None:
    """An unknown keyword asserts nothing, but it is more likely a typing error or another draft's assertion: refuse it."""
    for pointer, schema in walk(document):
        for keyword in schema if isinstance(schema, dict) else ():
            if is_annotation(keyword) or (keyword == "$id" and not pointer):
                continue
            if keyword in IDENTIFIERS:
                raise UnsupportedGrammar(f"`{keyword}` is not supported: refer by JSON pointer", join(pointer, keyword))
            if keyword not in KNOWN:
                raise UnsupportedGrammar(f"`{keyword[:80]}` is not a keyword of JSON Schema 2020-12", join(pointer, keyword))
