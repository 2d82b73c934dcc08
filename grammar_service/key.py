"""The grammar key: one name for all specs that mean the same grammar."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from grammar_service.schema.json_schema import read_schema
from grammar_service.schema.json_text import Json, shared_json, text_of
from grammar_service.schema.keywords import TEXT_ANNOTATIONS, mapped
from grammar_service.spec import SCHEMA_KINDS, SPACED_KINDS, GrammarKind, GrammarSpec

REMEMBERED = 4
KEY_VERSION = 6
"""Counts up when one spec comes to mean another grammar. 2: flexible whitespace is bounded, structural tags have a layout. 3: schemas
are closed or not, and are rewritten. 4: schemas are read by their dialect; `format` is enforced or not, and by patterns of our own; guards
keep names and items from coming twice. 5: members of open objects come in the order of `properties`. 6: what a schema's own `properties`
declare comes ahead of what its conditions do."""
_SILENT = TEXT_ANNOTATIONS | {"$schema"}


def grammar_key(spec: GrammarSpec, backend: str, backend_version: str, fingerprint: str) -> str:
    """Hex BLAKE2b-256 of the canonical spec, the backend with its version, and the tokenizer's fingerprint.

    Of a schema, the translation to draft 2020-12 counts (`schema.dialects`), since a dialect may change the meaning of the same words.
    The order of properties is meaning; insignificant JSON whitespace and a schema's title, description, $comment, examples, unknown
    keywords and unknown formats are not. Costs time linear in the text. Raises GrammarError as `read_schema` does.
    """
    digest = hashlib.blake2b(digest_size=32)
    whitespace = spec.whitespace if spec.kind in SPACED_KINDS else ""
    text = canonical_text(spec)
    closed = f"{spec.closed} {_formats(spec, text)}" if spec.kind in SCHEMA_KINDS else ""
    closed += " any order" if spec.any_order and spec.kind is GrammarKind.JSON_SCHEMA else ""
    for part in (str(KEY_VERSION), spec.kind.value, text, whitespace, closed, backend, backend_version, fingerprint):
        data = part.encode("utf-8")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def _formats(spec: GrammarSpec, text: str) -> str:
    """The option as far as it matters: a translated schema has no `format` that is none."""
    return str(spec.formats) if spec.kind is GrammarKind.STRUCTURAL_TAG and '"format"' in text else ""


@lru_cache(maxsize=REMEMBERED)
def canonical_text(spec: GrammarSpec) -> str:
    """The text that all specs of the same meaning share. The last ones are remembered: a spec has a key on each backend."""
    if spec.kind is GrammarKind.JSON_OBJECT:
        return ""
    if spec.kind is GrammarKind.JSON_SCHEMA:
        return text_of(_without_annotations(read_schema(spec.text, spec.formats).document))
    if spec.kind in (GrammarKind.CHOICE, GrammarKind.STRUCTURAL_TAG):
        return text_of(shared_json(spec.text))
    return spec.text


def _without_annotations(schema: Json) -> Json:
    """A translated schema without what its grammar does not depend on; names of properties, and data, are left alone."""
    if not isinstance(schema, dict):
        return schema
    return mapped({keyword: value for keyword, value in schema.items() if keyword not in _SILENT}, _without_annotations)
