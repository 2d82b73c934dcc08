"""`maskcast grammar …`: what one constraint or a folder of them means to the service. Backends, torch and tokenizers, which take up to four
seconds to import, are imported by the commands that need them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from grammar_service.spec import STANDARD, GrammarKind

app = typer.Typer(no_args_is_help=True, help="Check, compile and measure grammars; no service needs to run.")

File = Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="a JSON Schema, structural tag, regex, …")]
Folder = Annotated[Path, typer.Argument(exists=True, file_okay=False, help="a folder")]
Kind = Annotated[GrammarKind | None, typer.Option(help="what the file holds; by default its suffix says it")]
Whitespace = Annotated[str, typer.Option(help="of JSON: flexible, standard, compact or indent:N")]
TokenizerName = Annotated[str, typer.Option("--tokenizer", help="a model's folder, a name on the Hugging Face hub, 'embedded' or 'tekken'")]
Formats = Annotated[bool, typer.Option("--formats", help="`format` is an assertion")]
Output = Annotated[Path | None, typer.Option("--json", dir_okay=False, help="write the figures there")]


@app.command()
def check(file: File, kind: Kind = None, whitespace: Whitespace = STANDARD) -> None:
    """Is the constraint served, by which backend, and what would each backend not enforce? Exit code 1: it is refused."""
    from deployments.commands.grammar_tables import show_check
    from grammar_service.inspection import inspect
    from grammar_service.spec_file import read_spec

    inspection = inspect(read_spec(file, kind, whitespace))
    show_check(file, inspection, Console())
    raise typer.Exit(0 if inspection.served_by else 1)


@app.command("compile")
def compile_file(file: File, tokenizer: TokenizerName = "embedded", kind: Kind = None, whitespace: Whitespace = STANDARD) -> None:
    """Compile the constraint as the service does, and tell what it costs and which text it forces at the start."""
    from deployments.commands.grammar_tables import show_trial
    from deployments.commands.grammar_trial import try_out
    from deployments.commands.tokenizers import tokenizer_path
    from grammar_service.spec_file import read_spec

    spec = read_spec(file, kind, whitespace)
    show_trial(file, try_out(spec, tokenizer_path(tokenizer)), Console())


@app.command()
def conformance(folder: Folder, tokenizer: TokenizerName = "embedded", output: Output = None, formats: Formats = False) -> None:
    """Judge every instance of a folder of schemas with tests, as the official JSON Schema suite lays them out."""
    from deployments.commands.grammar_conformance import conformance_bench
    from deployments.commands.grammar_tables import show_conformance
    from deployments.commands.progress import CaseProgress
    from deployments.commands.tokenizers import tokenizer_path
    from grammar_service.conformance import run_conformance
    from grammar_service.vocabulary.tokenizer import GrammarTokenizer

    loaded = GrammarTokenizer.load(tokenizer_path(tokenizer))
    with CaseProgress(Console(stderr=True)) as progress:
        found = run_conformance(folder, loaded, lambda done, total: progress.show("schemas", done, total), formats)
    report = conformance_bench(_command(), found)
    show_conformance(found, report, Console())
    if output:
        report.write(output)


def _command() -> str:
    """What was typed, as it can be typed again."""
    return " ".join(["maskcast", *sys.argv[1:]])
