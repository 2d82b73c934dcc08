"""An equivalent schema in the few keywords that backends enforce exactly.

The schema is read into alternatives by type (`algebra`), which are closed under intersection, union and complement, and written
again. What is written allows exactly the values that were allowed before; where that cannot be had, there is no rewrite.
"""

from __future__ import annotations

from grammar_service.errors import GrammarError
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.reading import Reader
from grammar_service.schema.algebra.writing import Writer
from grammar_service.schema.keywords import Schema, walk
from grammar_service.schema.references import References

GROWTH = 4
"""A rewrite has at most this many times the schemas of the original, and SPARE more."""
SPARE = 200
MAX_SCHEMAS = 2000


def rewritten(document: Schema) -> Schema | None:
    """The rewrite of a schema in normal form, None where there is none."""
    try:
        references = References(dict(walk(document)))
        if len(references.schemas) > MAX_SCHEMAS:
            return None
        most = min(MAX_SCHEMAS, GROWTH * len(references.schemas) + SPARE)
        return Writer(Reader(references.schemas), most).document()
    except (Inexact, GrammarError, RecursionError):
        return None
