"""Everyday schemas and regexes to a token index, here and by `outlines-core`, in one run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from math import exp, log
from typing import Any

import outlines_core
import torch
from outlines_core.json_schema import build_regex_from_schema

from deployments.reporting.quantiles import ratio
from deployments.reporting.report import Row, Target
from grammar_service.automata.byte_dfa import of_regex
from grammar_service.automata.token_index import TokenIndex
from grammar_service.backends import select_backend
from grammar_service.errors import GrammarError
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.probes import ROOT
from load_tests.canonical.published.tables import INDEX_PART
from load_tests.corpus.languages import specs

SCHEMAS = (
    "business-address",
    "business-payment_event",
    "business-person",
    "business-product_page",
    "business-sentiment",
    "business-survey",
    "records-sensor_reading",
    "records-weather_report",
)
SCHEMA, REGEX = KINDS = ("schema", "regex")
_PLURALS = {SCHEMA: "schemas", REGEX: "regexes"}
FASTER = 5
_WARM = ('{"type": "object", "properties": {"any": {"type": "string"}}}', '{"type": "string", "pattern": "^a+$"}')
TOO_LARGE = ("a reason", "a short line")
"""Regexes that are left out: of one, outlines-core fills seven gigabytes; the other one is beyond our bounds."""


def index_rows(tokenizer: GrammarTokenizer, seed: int) -> Iterator[dict[str, Any]]:
    """Processor seconds, the tokenizer's own tables made before, on both sides of one regex: `ours`, `outlines_core`; `refused` where ours
    is beyond its bounds. For schemas also `served`: until the service has the canonical grammar that it answers with, and a first mask."""
    _ = tokenizer.trie, tokenizer.canonical
    for text in _WARM:
        _served(text, tokenizer)
    vocabulary = _vocabulary(tokenizer)
    for name, text in _schemas().items():
        row = {**_raced(build_regex_from_schema(text, ""), vocabulary, tokenizer), "served": round(_served(text, tokenizer), 4)}
        yield {"part": INDEX_PART, "kind": SCHEMA, "case": name, **row}
    for name, spec in specs(seed).items():
        if spec.kind is GrammarKind.REGEX and name not in TOO_LARGE:
            # `\d` is all of Unicode's digits to one of the two.
            yield {"part": INDEX_PART, "kind": REGEX, "case": name, **_raced(spec.text.replace(r"\d", "[0-9]"), vocabulary, tokenizer)}


def index_targets(rows: Sequence[Row]) -> Iterator[Target]:
    for kind in KINDS:
        found = [row for row in rows if row["part"] == INDEX_PART and row["kind"] == kind]
        yield _target(
            f"everyday {_PLURALS[kind]} to a token index, outlines-core / ours", [(row["outlines_core"], row["ours"]) for row in found]
        )
        if kind == SCHEMA:
            pairs = [(row["outlines_core"], row["served"]) for row in found]
            yield _target("everyday schemas to a canonical grammar and its first mask, outlines-core / ours", pairs)


def _target(name: str, pairs: Sequence[tuple[float, float | None]]) -> Target:
    """Of those that ours takes."""
    ratios = [found for theirs, ours in pairs if (found := ratio(theirs, ours)) is not None]
    mean = exp(sum(map(log, ratios)) / len(ratios)) if ratios else None
    return Target.at_least(f"{name}, geometric mean of {len(ratios)} of {len(pairs)}", mean, FASTER, "×")


def _schemas() -> dict[str, str]:
    folder = ROOT / "load_tests" / "corpus" / "schemas"
    return {name: (folder / f"{name}.json").read_text(encoding="utf-8") for name in SCHEMAS}


def _vocabulary(tokenizer: GrammarTokenizer) -> outlines_core.Vocabulary:
    ids: dict[bytes, list[int]] = {}
    for token, text in enumerate(tokenizer.vocabulary):
        if text:
            ids.setdefault(text, []).append(token)
    return outlines_core.Vocabulary(tokenizer.stop_token_ids[0], ids)


def _raced(regex: str, vocabulary: outlines_core.Vocabulary, tokenizer: GrammarTokenizer) -> dict[str, Any]:
    began = time.process_time()
    outlines_core.Index(regex, vocabulary)
    theirs = time.process_time() - began
    began = time.process_time()
    try:
        index = TokenIndex.of_language(of_regex(regex), tokenizer.trie)
    except GrammarError as error:
        return {"ours": None, "outlines_core": round(theirs, 4), "refused": error.message}
    ours = time.process_time() - began
    return {"ours": round(ours, 4), "outlines_core": round(theirs, 4), "states": len(index), "edges": index.edges}


def _served(schema: str, tokenizer: GrammarTokenizer) -> float:
    spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(json.loads(schema)), canonical=True)
    backend = select_backend(spec)
    began = time.process_time()
    grammar = backend.load(backend.compile(spec, tokenizer).data, tokenizer)
    grammar.matcher(None, 0).fill(torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32), 0)
    return time.process_time() - began
