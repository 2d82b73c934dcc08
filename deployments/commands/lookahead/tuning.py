"""`maskcast lookahead tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.commands.lookahead.grid import GRID, as_settings, chosen, table
from deployments.commands.progress import CaseProgress

app = typer.Typer(no_args_is_help=True, help="Look-ahead decoding.")


@app.callback()
def _group() -> None:
    """Look-ahead decoding."""


@app.command()
def tune(
    cases: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSON lines: prompt, reward, structured_outputs (optional)")],
    cost: Annotated[float, typer.Option(min=0, help="what a token of the draft model costs of one of the model")],
    url: Annotated[str, typer.Option(help="where a service with a draft model listens")] = "http://127.0.0.1:8000",
    api_key: Annotated[str | None, typer.Option(envvar="MASKCAST_API_KEY")] = None,
    satisfied: Annotated[float, typer.Option(help="the reward from which an answer is satisfied with")] = 1.0,
    d: Annotated[int, typer.Option(min=1, max=16)] = 3,
    k: Annotated[int, typer.Option(min=1, max=16)] = 3,
    max_tokens: Annotated[int, typer.Option(min=1, help="of an answer")] = 128,
    at_once: Annotated[int, typer.Option(min=1, help="requests at a time")] = 16,
    output: Annotated[Path | None, typer.Option(dir_okay=False, help="write the thresholds there, as settings")] = None,
    plot: Annotated[Path | None, typer.Option(dir_okay=False, help="draw the curves there, as PNG")] = None,
) -> None:
    """Try the thresholds of the paper's grid on texts of one's own, and take the best of the ten fastest."""
    # The client takes a second to import, for which `maskcast --help` would wait.
    from deployments.client import StructuredClient
    from deployments.commands.lookahead.cases import asking, read_cases, tried
    from deployments.commands.lookahead.curves import draw

    console, read = Console(), read_cases(cases)
    grid = [thresholds for thresholds in GRID if thresholds.b <= d]
    ask = asking(StructuredClient.over_http(url, api_key), {"d": d, "k": k}, max_tokens)
    with CaseProgress(Console(stderr=True)) as progress:
        found = tried(ask, read, grid, satisfied, cost, at_once, progress.show)
    taken = chosen(found)
    console.print(table(found, taken))
    text = as_settings(taken.thresholds)
    console.print(text, markup=False, highlight=False)
    if output:
        output.write_text(text, encoding="utf-8")
    if plot:
        draw(found, taken, plot)
