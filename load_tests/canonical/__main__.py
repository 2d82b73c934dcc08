"""`python -m load_tests.canonical`: the automaton of canonical sequences against encoders (the embedded tokenizer's, Tekken's, tiktoken's,
those of well-known pre-tokenizers on small trained tables), the theorem that it stands on, the algorithms of the automata against
enumeration, answers under everyday grammars, what all of it costs, and the figures that are published of such automata beside ours
(`--only published`)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.reporting.report import BenchReport
from grammar_service.automata.token_trie import TokenTrie
from grammar_service.vocabulary.tekken import tekken_folder
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.answers.never_stuck import answer_rows
from load_tests.canonical.answers.step_rows import step_rows
from load_tests.canonical.answers.suite import VARIABLE, suite_rows
from load_tests.canonical.byte_pairs import BytePairs
from load_tests.canonical.costs import forbidden_successors, narrow_cost, step_cost, table_cost
from load_tests.canonical.encoders.mistral import mistral_probes
from load_tests.canonical.encoders.trained import PATTERNS, trained_probes
from load_tests.canonical.merging import compare
from load_tests.canonical.probes import Probed, Probes, project_texts
from load_tests.canonical.products import languages, product_row
from load_tests.canonical.published import rows as published
from load_tests.canonical.targets import check_targets
from load_tests.canonical.theorem import brute_force

PACKAGES = ("maskcast", "tokenizers", "tiktoken", "mistral_common", "numpy", *published.PACKAGES)
SEED = 20261123
TEKKEN_SHARE = 40
"""Answers on the embedded tokenizer for one on Tekken, whose masks are sixty times as long."""
Row = dict[str, Any]


class Half(StrEnum):
    CHECKS = "checks"
    PUBLISHED = "published"


def main(
    sequences: Annotated[int, typer.Option(min=1, help="sequences for Tekken and for the embedded tokenizer, each")] = 100_000,
    rows: Annotated[int, typer.Option(min=1, help="tokens in rows, for each of them")] = 20_000,
    pairs: Annotated[int, typer.Option(min=1, help="pairs against tiktoken's BPE")] = 120_000,
    others: Annotated[int, typer.Option(min=1, help="sequences for each other pre-tokenizer")] = 10_000,
    automata: Annotated[int, typer.Option(min=1, help="random automata")] = 2000,
    tables: Annotated[int, typer.Option(min=1, help="random tables, of five kinds each, for the theorem")] = 60,
    walks: Annotated[int, typer.Option(min=1, help="answers by chance on the embedded tokenizer, under everyday grammars")] = 10_000,
    adversarial: Annotated[int, typer.Option(min=1, help="answers that are drawn to lead nowhere")] = 2000,
    suite: Annotated[Path | None, typer.Option(envvar=VARIABLE, help="folder of the official suite's files of one draft")] = None,
    only: Annotated[Half | None, typer.Option(help="leave out the other half")] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Check canonical sequences against encoders, measure what they cost, and set it beside what is published."""
    tekken = GrammarTokenizer.load(tekken_folder())
    found: list[Row] = []
    if only is not Half.PUBLISHED:
        found += [*_theorem(tables), *_merging(automata), *_pairs(tekken, pairs)]
        found += [*_encoders(tekken, sequences, rows, others), *_costs(tekken), *_answers(tekken, walks, adversarial, suite)]
    if only is not Half.CHECKS:
        found += published.published_rows(tekken, SEED)
    counts = f"--sequences {sequences} --rows {rows} --pairs {pairs} --others {others} --automata {automata} --tables {tables}"
    counts += f" --walks {walks} --adversarial {adversarial}" + (f" --suite {suite.name}" if suite else "")
    options = [*([] if only is Half.PUBLISHED else [counts]), *([f"--only {only}"] if only else [])]
    command = " ".join(["python -m load_tests.canonical", *options])
    report = BenchReport.here(command, PACKAGES, [*check_targets(found), *published.published_targets(found)], found)
    raise typer.Exit(report.publish(Console(), json_out))


def _theorem(tables: int) -> Iterator[Row]:
    for (kind, encoder, with_itself), tried in brute_force(tables, SEED).items():
        yield {
            "part": "theorem",
            "table": kind,
            "encoder": encoder,
            "letter_with_itself": with_itself,
            "tried": tried.sequences,
            "wrong": tried.exceptions,
        }


def _merging(automata: int) -> Iterator[Row]:
    found = compare(automata, SEED)
    yield {"part": "merging", "algorithm": "DirectMerge", "tried": found.automata, "wrong": found.direct_wrong}
    yield {"part": "merging", "algorithm": "CartesianMerge", "tried": found.automata, "wrong": found.cartesian_wrong}


def _pairs(tekken: GrammarTokenizer, count: int) -> Iterator[Row]:
    pairs = BytePairs(tekken, SEED)
    yield _row("pairs", "any two tokens", pairs.random(count // 3))
    yield _row("pairs", "around a merge", pairs.around_merges(count // 3))
    yield {
        **_row("pairs", "around a merge that ranks below an operand's", pairs.around_early_merges(count // 3)),
        "merges": pairs.early_merges,
    }


def _encoders(tekken: GrammarTokenizer, sequences: int, rows: int, others: int) -> Iterator[Row]:
    for name, tokenizer in {"embedded": GrammarTokenizer.load(EMBEDDED_WEIGHTS), "tekken": tekken}.items():
        yield from _probed(name, Probes(tokenizer, tokenizer.canonical, project_texts(), SEED), sequences, rows)
    for name in PATTERNS:
        yield from _probed(name, trained_probes(name, SEED), others, others // 10)
    yield from _probed("mistral 7b", mistral_probes(SEED), others, others // 10)


def _costs(tekken: GrammarTokenizer) -> Iterator[Row]:
    yield {"tokenizer": "tekken", **table_cost(tekken)}
    yield {"tokenizer": "embedded", **table_cost(GrammarTokenizer.load(EMBEDDED_WEIGHTS))}
    yield {"tokenizer": "tekken", **step_cost(tekken, project_texts()[0])}
    yield {"tokenizer": "tekken", **narrow_cost(tekken, project_texts(), SEED)}
    yield {"tokenizer": "tekken", **forbidden_successors(tekken.canonical, range(1000, tekken.vocab_size, 10))}
    yield from _products(tekken)


def _answers(tekken: GrammarTokenizer, walks: int, adversarial: int, suite: Path | None) -> Iterator[Row]:
    embedded, texts = GrammarTokenizer.load(EMBEDDED_WEIGHTS), project_texts()
    yield from ({"tokenizer": "embedded", **row} for row in suite_rows(suite, embedded))
    yield from ({"tokenizer": "embedded", **row} for row in answer_rows(embedded, texts, walks, adversarial, SEED))
    few, fewer = (-(-count // TEKKEN_SHARE) for count in (walks, adversarial))
    yield from ({"tokenizer": "tekken", **row} for row in answer_rows(tekken, texts, few, fewer, SEED))
    yield from ({"tokenizer": "tekken", **row} for row in step_rows(tekken, texts, SEED))


def _probed(name: str, probes: Probes, sequences: int, rows: int) -> Iterator[Row]:
    yield {"tokenizer": name, **_row("encoder", "tokens of texts", probes.texts())}
    yield {"tokenizer": name, **_row("encoder", "sequences", probes.sequences(sequences))}
    yield {"tokenizer": name, **_row("encoder", "tokens in rows", probes.rows(rows))}


def _row(part: str, what: str, probed: Probed) -> Row:
    return {"part": part, "what": what, "tried": probed.tried, "canonical": probed.canonical, "wrong": probed.wrong}


def _products(tokenizer: GrammarTokenizer) -> Iterator[Row]:
    trie = TokenTrie(tokenizer.vocabulary)
    for name, language in languages().items():
        yield {"tokenizer": "tekken", **product_row(name, language, tokenizer, trie)}


if __name__ == "__main__":
    typer.run(main)
