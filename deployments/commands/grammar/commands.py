"""`maskcast grammar …`: what one constraint or a folder of them means to the service. Backends, torch and tokenizers, which take up to four
seconds to import, are imported by the commands that need them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from grammar_service.spec import STANDARD, GrammarKind

if TYPE_CHECKING:
    from deployments.reporting.report import BenchReport
    from grammar_service.conformance import ConformanceReport
    from grammar_service.vocabulary.tokenizer import GrammarTokenizer

app = typer.Typer(no_args_is_help=True, help="Check, compile and measure grammars; no service needs to run.")

File = Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="a JSON Schema, structural tag, regex, …")]
Folder = Annotated[Path, typer.Argument(exists=True, file_okay=False, help="a folder")]
Kind = Annotated[GrammarKind | None, typer.Option(help="what the file holds; by default its suffix says it")]
Whitespace = Annotated[str, typer.Option(help="of JSON: flexible, standard, compact or indent:N")]
TokenizerName = Annotated[str, typer.Option("--tokenizer", help="a model's folder, a name on the Hugging Face hub, 'embedded' or 'tekken'")]
Formats = Annotated[bool, typer.Option("--formats", help="`format` is an assertion")]
Output = Annotated[Path | None, typer.Option("--json", dir_okay=False, help="write the figures there")]
Draft = Annotated[list[str] | None, typer.Option(help="draft4, draft6, draft7, draft2019-09, draft2020-12: their folders, of that dialect")]


@app.command()
def check(file: File, kind: Kind = None, whitespace: Whitespace = STANDARD) -> None:
    """Is the constraint served, by which backend, and what would each backend not enforce? Exit code 1: it is refused."""
    from deployments.commands.grammar.tables import show_check
    from grammar_service.inspection import inspect
    from grammar_service.spec_file import read_spec

    inspection = inspect(read_spec(file, kind, whitespace))
    show_check(file, inspection, Console())
    raise typer.Exit(0 if inspection.served_by else 1)


@app.command("compile")
def compile_file(file: File, tokenizer: TokenizerName = "embedded", kind: Kind = None, whitespace: Whitespace = STANDARD) -> None:
    """Compile the constraint as the service does, and tell what it costs and which text it forces at the start."""
    from deployments.commands.grammar.tables import show_trial
    from deployments.commands.grammar.trial import try_out
    from deployments.commands.tokenizers import tokenizer_path
    from grammar_service.spec_file import read_spec

    spec = read_spec(file, kind, whitespace)
    show_trial(file, try_out(spec, tokenizer_path(tokenizer)), Console())


@app.command()
def automaton(
    file: File,
    tokenizer: TokenizerName = "embedded",
    kind: Kind = None,
    graph: Annotated[Path | None, typer.Option(dir_okay=False, help="write small ones there for Graphviz")] = None,
) -> None:
    """The automata over tokens of a regex or a list of choices: of all token sequences of its texts, and of those that the tokenizer makes
    itself; how many tokens a model is asked for."""
    from deployments.commands.grammar.automaton import automata_of
    from deployments.commands.grammar.automaton_table import show_automata
    from deployments.commands.grammar.graphviz import graphviz
    from deployments.commands.grammar.panels import panels_of
    from deployments.commands.tokenizers import tokenizer_path
    from grammar_service.spec_file import read_spec
    from grammar_service.vocabulary.tokenizer import GrammarTokenizer

    spec = read_spec(file, kind)
    loaded = GrammarTokenizer.load(tokenizer_path(tokenizer))
    found = automata_of(spec, loaded)
    show_automata(file, found, Console())
    if graph:
        graph.write_text(graphviz(panels_of(found, loaded.vocabulary)), encoding="utf-8")


@app.command()
def conformance(
    folder: Folder, tokenizer: TokenizerName = "embedded", draft: Draft = None, formats: Formats = False, output: Output = None
) -> None:
    """Judge every instance of a folder of schemas with tests: one laid out as the official JSON Schema suite is, or SchemaStore's."""
    from deployments.commands.tokenizers import tokenizer_path
    from grammar_service.conformance.schemastore import is_schemastore
    from grammar_service.vocabulary.tokenizer import GrammarTokenizer

    loaded = GrammarTokenizer.load(tokenizer_path(tokenizer))
    report = _judged_collection(folder, loaded) if is_schemastore(folder) else _judged_suites(folder, loaded, draft or [], formats)
    if output:
        report.write(output)


def _judged_suites(folder: Path, tokenizer: GrammarTokenizer, drafts: Sequence[str], formats: bool) -> BenchReport:
    """Of these drafts, or the one that the folder holds."""
    from deployments.commands.grammar.conformance import conformance_bench
    from deployments.commands.grammar.tables import show_conformance

    wanted: list[str | None] = [*drafts] or [None]
    found = {name: _judged(folder, tokenizer, name, formats) for name in wanted}
    for name, report in found.items():
        show_conformance(report, conformance_bench(_command(), {name: report}), Console())
    return conformance_bench(_command(), found)


def _judged(folder: Path, tokenizer: GrammarTokenizer, draft: str | None, formats: bool) -> ConformanceReport:
    from deployments.commands.progress import CaseProgress
    from grammar_service.conformance import run_conformance

    with CaseProgress(Console(stderr=True)) as progress:
        return run_conformance(folder, tokenizer, partial(progress.show, draft or "schemas"), draft, formats)


def _judged_collection(folder: Path, tokenizer: GrammarTokenizer) -> BenchReport:
    from deployments.commands.grammar.collection import collection_bench, show_collection
    from deployments.commands.progress import CaseProgress
    from grammar_service.conformance.collection import run_collection

    with CaseProgress(Console(stderr=True)) as progress:
        findings = run_collection(folder, tokenizer, lambda done, total: progress.show("schemas", done, total))
    report = collection_bench(_command(), findings)
    show_collection(findings, report, Console())
    return report


def _command() -> str:
    """What was typed, as it can be typed again."""
    return " ".join(["maskcast", *sys.argv[1:]])
