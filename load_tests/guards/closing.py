"""`python -m load_tests.guards.closing`: random answers under random schemas whose `max_tokens` are too few for them, each closed in time,
on both backends and a vocabulary of 131,072; and what looking for an end adds to a token."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from random import Random
from statistics import mean
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console

from deployments.reporting.report import BenchReport, Target
from grammar_service.backends import CompiledGrammar, backend_named
from grammar_service.segments import Segmenter
from grammar_service.segments.closing import ClosingSearch
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tekken import tekken_folder
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.guards.random_schemas import random_schema
from load_tests.guards.walks import is_valid
from model_service.jump_forward.closing_policy import MARGIN, MOST_TOKENS, ClosingPolicy

PACKAGES = ("maskcast", "xgrammar", "llguidance", "jsonschema", "mistral_common", "torch", "numpy")
BACKENDS = ("xgrammar", "llguidance")
SEED = 20261129
ROOM = 80
"""Tokens that an answer may have more than the shortest one of its grammar."""
MOST_US = 1000


@dataclass
class Closed:
    """One answer: its text, whether it was closed, and the seconds that each of its tokens took to look for an end."""

    text: str = ""
    is_closed: bool = False
    seconds: list[float] = field(default_factory=list)


class Answers:
    """Random ones of grammars of one vocabulary, as an engine would make them: forced text behind each sampled token."""

    def __init__(self, tokenizer: GrammarTokenizer) -> None:
        self._tokenizer = tokenizer
        self._segmenter = Segmenter(tokenizer)
        self._policy = ClosingPolicy(tokenizer)
        self._search = ClosingSearch(tokenizer)
        self._mask = torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)

    def least(self, grammar: CompiledGrammar) -> int | None:
        """The tokens from which on every answer can be closed; None: its shortest has too many."""
        shortest = self._search.find(grammar.matcher(None, 0), MOST_TOKENS)
        return None if shortest is None else len(shortest) + MARGIN + 1

    def answer(self, grammar: CompiledGrammar, most: int, chance: Random) -> Closed:
        matcher, tokens, closed = grammar.matcher(None, 0), list[int](), Closed()
        while len(tokens) < most:
            forced = self._segmenter.find(matcher, tokens).tokens[: most - len(tokens)]
            tokens += [token for token in forced if matcher.accept(token)]
            if len(tokens) == most:
                break
            matcher.fill(self._mask, 0)
            sampled = int(chance.choice(np.flatnonzero(np.unpackbits(self._mask[0].numpy().view(np.uint8), bitorder="little"))))
            began = time.perf_counter()
            ending = self._policy.ending("", matcher, len(tokens), [sampled], most - len(tokens))
            closed.seconds.append(time.perf_counter() - began)
            if ending is not None:
                tokens += ending
                closed.is_closed = True
                break
            if sampled in self._tokenizer.stop_token_ids:
                break
            assert matcher.accept(sampled)
            tokens.append(sampled)
        self._policy.forget("")
        closed.text = b"".join(self._tokenizer.vocabulary[token] for token in tokens).decode("utf-8", "replace")
        return closed


def main(
    schemas: Annotated[int, typer.Option(min=1, help="random schemas")] = 1000,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Close random answers in time."""
    answers = Answers(GrammarTokenizer.load(tekken_folder()))
    rows = list(islice(_rows(answers), schemas))
    report = BenchReport.here(f"python -m load_tests.guards.closing --schemas {schemas}", PACKAGES, _targets(rows), rows)
    raise typer.Exit(report.publish(Console(), json_out))


def _rows(answers: Answers) -> Iterator[dict[str, Any]]:
    """One a schema that some backend serves, with an answer on each."""
    for seed in count(SEED):
        schema, chance = random_schema(Random(seed)), Random(seed)
        spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema))
        row: dict[str, Any] = {"schema": schema, "backends": {}}
        for name in BACKENDS:
            backend = backend_named(name)
            if backend.unsupported(spec):
                continue
            grammar = backend.load(backend.compile(spec, answers._tokenizer).data, answers._tokenizer)
            if (least := answers.least(grammar)) is None:
                continue
            most = least + chance.randrange(ROOM)
            closed = answers.answer(grammar, most, chance)
            row["backends"][name] = {
                "max_tokens": most,
                "closed": closed.is_closed,
                "valid": _is_valid(closed.text, schema),
                "us": round(mean(closed.seconds) * 1e6, 1) if closed.seconds else 0.0,
            }
        if row["backends"]:
            yield row


def _is_valid(text: str, schema: dict[str, Any]) -> bool:
    try:
        return is_valid(text, schema)
    except ValueError:
        return False


def _targets(rows: list[dict[str, Any]]) -> list[Target]:
    answers = [answer for row in rows for answer in row["backends"].values()]
    closed = [answer for answer in answers if answer["closed"]]
    slowest = max(answer["us"] for answer in answers)
    return [
        Target.at_least("answers under random schemas", len(answers), 1, ""),
        Target.at_least("of them, closed in time", len(closed), len(answers) // 4, ""),
        Target.at_most("answers that are not valid", sum(not answer["valid"] for answer in answers), 0, ""),
        Target.at_most("looking for an end, a token: mean", round(mean(answer["us"] for answer in answers), 1), MOST_US, "µs"),
        Target.at_most("looking for an end, a token: mean of the slowest answer", slowest, 10 * MOST_US, "µs"),
    ]


if __name__ == "__main__":
    typer.run(main)
