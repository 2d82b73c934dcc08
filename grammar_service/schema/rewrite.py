"""An equivalent schema in the few keywords that backends enforce exactly.

The schema is read into alternatives by type (`algebra`), which are closed under intersection, union and complement, and written
again. What is written allows exactly the values that were allowed before. Where that is not possible there is no rewrite, or a narrower
one: it forbids an optional member whose allowed values cannot be described. For example, `oneOf` allows a job that has an `executor` to
have a `docker` only if that is invalid; the narrower rewrite forbids `docker` there.
"""

from __future__ import annotations

from typing import Literal

from grammar_service.errors import GrammarError
from grammar_service.schema.algebra.inexact import Inexact, Reason
from grammar_service.schema.keywords import Schema, walk
from grammar_service.schema.reading.document import Document
from grammar_service.schema.reading.reader import Reader
from grammar_service.schema.references import References
from grammar_service.schema.writing.writer import Writer

MAX_SCHEMAS = 8000
"""Schemas in a document that is rewritten, and in its rewrite: 1 s for as many."""


def rewrite(document: Schema, may_narrow: bool = False) -> Schema | Reason | Literal[False]:
    """The rewrite of a schema in normal form, or why there is none; False where no value matches. `may_narrow`: where there is no exact
    rewrite, a narrower one is returned."""
    try:
        references = References(dict(walk(document)))
        if len(references.schemas) > MAX_SCHEMAS:
            return Reason(f"a schema of more than {MAX_SCHEMAS} parts is not rewritten")
        reader = Reader(Document(references.schemas))
        try:
            return Writer(reader, MAX_SCHEMAS).document()
        except Inexact as error:
            return (may_narrow and _narrower(reader)) or Reason.of(error)
    except GrammarError as error:
        return Reason.of(error)
    except RecursionError:
        return Reason("a schema that is nested as deep as this is not rewritten")


def _narrower(reader: Reader) -> Schema | Literal[False]:
    """False where there is none."""
    try:
        return Writer(reader, MAX_SCHEMAS, narrow=True).document()
    except (GrammarError, RecursionError):
        return False
