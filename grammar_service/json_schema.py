"""A user's JSON Schema: parsed, checked, in normal form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from grammar_service.errors import InvalidGrammar, UnsupportedGrammar
from grammar_service.fault import AllowList, Fault
from grammar_service.json_text import Json, shared_json
from grammar_service.pointer import join
from grammar_service.schema.endless import endless_schema
from grammar_service.schema.identifiers import with_pointers
from grammar_service.schema.keywords import IDENTIFIERS, KNOWN, is_annotation, walk
from grammar_service.schema.normal import Normaliser
from grammar_service.schema.references import References
from grammar_service.schema.rewrite import rewritten
from grammar_service.schema.shape import check_shape

REMEMBERED = 4
_TAKEN = KNOWN - IDENTIFIERS
_DIALECTS = ("https://json-schema.org/", "http://json-schema.org/")


@dataclass(frozen=True, slots=True)
class Form:
    """A schema as a backend may read it. `faults`: what that backend would not enforce exactly; their pointers are of the user's own
    schema."""

    document: dict[str, Json]
    faults: list[Fault]


@dataclass(frozen=True)
class JsonSchema:
    """`normal` is the normal form (see `schema.normal`), always an object; `references` belong to the user's own form. What is in it is
    shared: nobody may change it."""

    normal: dict[str, Json]
    references: References
    closed: bool = True
    _forms: dict[AllowList, Form] = field(default_factory=dict, compare=False, repr=False)

    def form_for(self, faults_of: AllowList) -> Form:
        """The form that the backend of this allow-list enforces exactly, or else the normal form with its faults.

        A closed schema is rewritten only where its normal form would not do, and a rewrite may. An open one is rewritten where that is
        possible, since a rewrite admits all spellings of a number.
        """
        if faults_of not in self._forms:
            self._forms[faults_of] = self._form_for(faults_of)
        return self._forms[faults_of]

    def _form_for(self, faults_of: AllowList) -> Form:
        faults = list(faults_of(self.normal, False)) if self.closed else None
        if faults is not None and all(fault.lasting for fault in faults):
            return Form(self.normal, faults)
        if self._rewrite is not None and not any(True for _ in faults_of(self._rewrite, True)):
            return Form(self._rewrite, [])
        return Form(self.normal, list(faults_of(self.normal, False)) if faults is None else faults)

    @cached_property
    def _rewrite(self) -> dict[str, Json] | None:
        return rewritten(self.normal)


@lru_cache(maxsize=REMEMBERED)
def parse_schema(text: str, closed: bool = True) -> JsonSchema:
    """Read a JSON Schema (draft 2020-12). `closed` as in `GrammarSpec`. The last ones are remembered, since both backends are asked
    about one schema, and the one that is chosen compiles it.

    Raises:
        InvalidGrammar: not JSON, not a schema, a reference that leads nowhere, or a schema that nothing matches.
        UnsupportedGrammar: a keyword that nobody knows, a remote reference, or one that may mean several schemas.
        GrammarTooLarge: nested too deep.
    """
    return schema_of(shared_json(text), closed)


def schema_of(document: Json, closed: bool = True) -> JsonSchema:
    """The same for a schema that is already parsed."""
    schemas = dict(walk(document))
    check_shape(schemas)
    pointed = with_pointers(document, schemas)
    if pointed is not document:
        document, schemas = pointed, dict(walk(pointed))
    _refuse_unknown(schemas)
    if not closed:
        _refuse_dialect(document)
    references = References(schemas)
    if (endless := endless_schema(references, closed)) is not None:
        raise InvalidGrammar("no value that ends matches this schema", endless)
    normal = Normaliser(references, closed).normal(document)
    if normal is False:
        raise InvalidGrammar("the schema `false` matches nothing", "")
    return JsonSchema(normal if isinstance(normal, dict) else {}, references, closed)


def _refuse_dialect(document: Json) -> None:
    """A vocabulary of somebody's own may leave out keywords, which would then assert nothing."""
    named = document.get("$schema") if isinstance(document, dict) else None
    if named is not None and not str(named).startswith(_DIALECTS):
        raise UnsupportedGrammar("only the dialects of json-schema.org are known", "/$schema")


def _refuse_unknown(schemas: Mapping[str, Json]) -> None:
    """An unknown keyword asserts nothing, but it is more likely a typing error or another draft's assertion: refuse it."""
    for pointer, schema in schemas.items():
        for keyword in schema if isinstance(schema, dict) else ():
            if keyword in _TAKEN or is_annotation(keyword) or (keyword == "$id" and not pointer):
                continue
            if keyword in IDENTIFIERS:
                raise UnsupportedGrammar(f"`{keyword}` is not supported: refer by JSON pointer", join(pointer, keyword))
            if keyword not in KNOWN:
                raise UnsupportedGrammar(f"`{keyword[:80]}` is not a keyword of JSON Schema 2020-12", join(pointer, keyword))
