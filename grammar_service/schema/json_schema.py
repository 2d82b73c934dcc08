"""A user's JSON Schema: parsed, checked, in normal form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from grammar_service.errors import GrammarError, InvalidGrammar, NothingMatches, UnsupportedGrammar
from grammar_service.schema.algebra.inexact import Reason
from grammar_service.schema.dialects.places import Places
from grammar_service.schema.dialects.translation import Translation, translated
from grammar_service.schema.endless import endless_schema
from grammar_service.schema.fault import AllowList, Fault, explained
from grammar_service.schema.json_text import Json, shared_json
from grammar_service.schema.keywords import Schema
from grammar_service.schema.normal_form.normal import Normaliser
from grammar_service.schema.references import References
from grammar_service.schema.rewrite import rewrite
from grammar_service.schema.writing.narrowing import narrowed
from grammar_service.warning import ConstraintWarning

REMEMBERED = 4
Change = Callable[[Schema], Schema]


@dataclass(frozen=True, slots=True)
class Form:
    """A schema as a backend may read it. `faults`: what that backend would not enforce exactly; their pointers are of the user's own
    schema."""

    document: dict[str, Json]
    faults: list[Fault]


@dataclass(frozen=True)
class JsonSchema:
    """`normal` is the normal form (`schema.normal_form`), always an object; `references` belong to the schema as it was read (see
    `schema.dialects`), `places` tell where that stands in the user's own. What is in it is shared: nobody may change it. `warnings` have
    pointers of the user's own schema."""

    normal: dict[str, Json]
    references: References
    closed: bool = True
    warnings: tuple[ConstraintWarning, ...] = ()
    places: Places = field(default_factory=Places)
    _forms: dict[tuple[AllowList, Change | None], Form] = field(default_factory=dict, compare=False, repr=False)

    def form_for(self, faults_of: AllowList, change: Change | None = None) -> Form:
        """The form that the backend of this allow-list enforces exactly, or else the normal form with its faults.

        A closed schema is rewritten only where its normal form would not do, and a rewrite may. An open one is rewritten where that is
        possible, since a rewrite admits all spellings of a number. `change`: what is made of a rewrite first, where the backend enforces
        that.

        Raises NothingMatches, where reading what is not served as it is shows that no value is left.
        """
        known = faults_of, change
        if known not in self._forms:
            form = (self._rewritten_form(faults_of, change) if change is not None else None) or self._form_for(faults_of)
            self._forms[known] = Form(form.document, [fault.at(self.places.original) for fault in form.faults])
        return self._forms[known]

    def faults_as_written(self, faults_of: AllowList) -> list[Fault]:
        """What the backend of an allow-list would not enforce exactly if it got no other form of the schema."""
        return [fault.at(self.places.original) for fault in faults_of(self.normal, False)]

    def _rewritten_form(self, faults_of: AllowList, change: Change | None = None) -> Form | None:
        """The first rewrite that the backend enforces, if any."""
        rewritten = self._rewrite
        for candidate in self._candidates(rewritten) if isinstance(rewritten, dict) else ():
            changed = candidate if change is None else change(candidate)
            if not any(True for _ in faults_of(changed, True)):
                return Form(changed, [])
        return None

    def _form_for(self, faults_of: AllowList) -> Form:
        faults = list(faults_of(self.normal, False)) if self.closed else None
        if faults is not None and all(fault.lasting for fault in faults):
            return Form(self.normal, faults)
        rewritten = self._rewrite
        if rewritten is False:
            raise NothingMatches("no value matches the schema", "")
        if (form := self._rewritten_form(faults_of)) is not None:
            return form
        faults = list(faults_of(self.normal, False)) if faults is None else faults
        return Form(self.normal, explained(faults, rewritten) if isinstance(rewritten, Reason) else faults)

    def _candidates(self, rewritten: dict[str, Json]) -> Iterator[dict[str, Json]]:
        """The rewrite, and what a backend may enforce of it in its place."""
        yield rewritten
        if isinstance(narrow := narrowed(rewritten), dict) and narrow != rewritten:
            yield narrow

    @cached_property
    def _rewrite(self) -> Schema | Reason | Literal[False]:
        return rewrite(self.normal, may_narrow=True)


@lru_cache(maxsize=REMEMBERED)
def parse_schema(text: str, closed: bool = True, formats: bool = True) -> JsonSchema:
    """Read a JSON Schema of any dialect (`schema.dialects`). `closed` and `formats` as in `GrammarSpec`. The last ones are remembered,
    since both backends are asked about one schema, and the one that is chosen compiles it.

    Raises:
        InvalidGrammar: not JSON, not a schema, a reference that leads nowhere, or a schema that nothing matches.
        UnsupportedGrammar: draft-03, a dialect of somebody's own, a remote reference, or one that may mean several schemas.
        GrammarTooLarge: nested too deep.
    """
    return _checked(read_schema(text, formats), closed)


@lru_cache(maxsize=REMEMBERED)
def read_schema(text: str, formats: bool = True) -> Translation:
    """The schema in the words of draft 2020-12, before its meaning is looked at. Raises as `parse_schema`."""
    return translated(shared_json(text), formats)


def schema_of(document: Json, closed: bool = True, formats: bool = True) -> JsonSchema:
    """As `parse_schema`, for a schema that is already parsed."""
    return _checked(translated(document, formats), closed)


def _checked(read: Translation, closed: bool) -> JsonSchema:
    if not closed and read.foreign is not None:
        # A vocabulary of somebody's own may leave out keywords, which would then assert nothing.
        raise UnsupportedGrammar("only the dialects of json-schema.org are known", read.foreign)
    try:
        return _in_normal_form(read, closed)
    except GrammarError as error:
        raise type(error)(error.message, None if error.pointer is None else read.places.original(error.pointer)) from None


def _in_normal_form(read: Translation, closed: bool) -> JsonSchema:
    references = References(read.schemas)
    if (endless := endless_schema(references, closed)) is not None:
        raise InvalidGrammar("no value that ends matches this schema", endless)
    normal = Normaliser(references, closed).normal(read.document)
    if normal is False:
        raise NothingMatches("the schema `false` matches nothing", "")
    return JsonSchema(normal if isinstance(normal, dict) else {}, references, closed, read.warnings, read.places)
