"""The valid instances of a suite: where the plain grammar accepts one, the canonical grammar must take the tokenizer's sequence of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from grammar_service.conformance.acceptors import acceptor
from grammar_service.conformance.isolation import in_children
from grammar_service.conformance.run import DEADLINE_S
from grammar_service.conformance.suite import Group, read_suite
from grammar_service.errors import CompileFailed, CompileTimeout, GrammarError
from grammar_service.spec import STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.answers.answering import Answering
from load_tests.canonical.answers.languages import loaded

PART = "suite"
VARIABLE = "MASKCAST_JSON_SCHEMA_SUITE"
"""Names a folder of the official suite's files, `…/tests/draft2020-12`."""
AT_ONCE = 2


class Followed(msgspec.Struct, frozen=True):
    """Of one schema. `served`: plain; `texts`: those that the plain grammar accepts; `refused`: of these, by the canonical one."""

    served: bool = False
    texts: int = 0
    refused: int = 0


def suite_rows(folder: Path | None, tokenizer: GrammarTokenizer) -> Iterator[dict[str, Any]]:
    """One row, which says so where there is no folder. `lost`: schemas on which a child died, or took too long."""
    if folder is None:
        yield {"part": PART, "left_out": f"no folder of the official suite was given (--suite, {VARIABLE})"}
        return
    # Made before any child is forked, so that all share it.
    _ = tokenizer.llguidance, tokenizer.fingerprint, tokenizer.canonical, tokenizer.inner
    groups = read_suite(folder)
    answering, found = Answering(tokenizer), Counter[str]()
    works = [partial(followed, group, tokenizer, answering) for group in groups]
    for _, one in in_children(works, Followed, DEADLINE_S, AT_ONCE):
        if isinstance(one, CompileTimeout | CompileFailed):
            found["lost"] += 1
        else:
            found.update(served=one.served, texts=one.texts, refused=one.refused)
    yield {"part": PART, "schemas": len(groups), **{name: found[name] for name in ("served", "lost", "texts", "refused")}}


def followed(group: Group, tokenizer: GrammarTokenizer, answering: Answering) -> Followed:
    """Instances as `json.dumps` writes them, with escapes and without. A canonical grammar that is refused refuses them all."""
    spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(group.schema), STANDARD, closed=False, formats=False)
    try:
        accepts = acceptor(spec, tokenizer)
    except GrammarError:
        return Followed()
    values = [case.instance for case in group.cases if case.valid]
    texts = dict.fromkeys(json.dumps(value, ensure_ascii=escaped) for value in values for escaped in (True, False))
    sequences = [tokens for text in texts if accepts(tokens := tokenizer.encode(text))]
    try:
        grammar = loaded(replace(spec, canonical=True), tokenizer)
    except GrammarError:
        return Followed(True, len(sequences), len(sequences))
    return Followed(True, len(sequences), sum(not answering.follows(grammar, tokens) for tokens in sequences))
