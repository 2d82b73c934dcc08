"""The command line. Ray, vLLM and the rest are imported by the commands that need them: `--help` must not wait for them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments import grammar_commands
from grammar_service.errors import MaskcastError

if TYPE_CHECKING:
    from deployments.attached import AttachedCluster
    from deployments.config import Settings
    from deployments.interrupts import Interrupts
    from deployments.local import LocalCluster
    from deployments.progress import Progress

INTERRUPTED = 130

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="Structured decoding on Ray and vLLM.")
app.add_typer(grammar_commands.app, name="grammar")


@app.command()
def serve(
    config: Annotated[Path | None, typer.Option(help="YAML settings; the environment (MASKCAST_…) overrides them")] = None,
    once: Annotated[bool, typer.Option("--once", help="stop after the sample request")] = False,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="HTTP port; overrides the settings; 0: any that is free")] = None,
) -> None:
    """Start everything on this machine (or on the Ray cluster of RAY_ADDRESS), show one extraction, serve until Ctrl-C."""
    from rich.console import Console

    from deployments.interrupts import Interrupts
    from deployments.progress import Progress

    settings = _settings(config, port)
    progress = Progress(Console(stderr=True))
    with Interrupts() as interrupts:
        cluster = _cluster(settings, progress, interrupts)
        try:
            cluster.start()
            _show(cluster, settings, interrupts, once)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        finally:
            interrupts.mute()
            cluster.stop()


@app.command()
def status(url: Annotated[str, typer.Option(help="where the service listens")] = "http://127.0.0.1:8000") -> None:
    """Show what runs; the exit code is 0 only if requests are answered."""
    from rich.console import Console

    from deployments.status import read_status, show_status

    readiness, ready = read_status(url)
    show_status(readiness, Console())
    raise typer.Exit(0 if ready else 1)


@app.command()
def simulate(
    replicas: Annotated[int, typer.Option(min=2, help="model replicas")] = 64,
    schemas: Annotated[int, typer.Option(min=1, help="different schemas, asked for by Zipf's law")] = 5000,
    seconds: Annotated[float, typer.Option(min=0.5, help="how long requests arrive, in simulated time")] = 5.0,
    rate: Annotated[float, typer.Option(min=0.1, help="requests a second and replica")] = 30.0,
    zipf: Annotated[float, typer.Option(min=0.0, help="exponent of popularity; 0: all schemas alike")] = 1.0,
    unkeyed: Annotated[float, typer.Option(min=0.0, max=1.0, help="share of requests without a schema")] = 0.1,
    routers: Annotated[int, typer.Option(min=1, help="processes that route independently")] = 4,
    scenario: Annotated[str | None, typer.Option(help="only steady, burst, failures or scale-up")] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="play these requests instead: JSON lines of at_s, key, prompt_tokens, output_tokens"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="the same seed plays the same")] = 0,
    output: Annotated[Path | None, typer.Option("--json", dir_okay=False, help="write the figures there")] = None,
    plot: Annotated[Path | None, typer.Option(dir_okay=False, help="draw them there, as PNG")] = None,
) -> None:
    """Compare ways of routing on as many simulated replicas as you like; no service needs to run."""
    from rich.console import Console

    from deployments.grammar_progress import CaseProgress
    from deployments.simulation import draw, report, scenarios, table
    from deployments.simulation import simulate as play
    from router.simulation.scenarios import Size

    played = scenarios(Size(replicas, schemas, seconds, rate, zipf, unkeyed, routers), seed, trace, scenario)
    with CaseProgress(Console(stderr=True)) as progress:
        found = play(played, seed, progress.show)
    measured = report(" ".join(["maskcast", *sys.argv[1:]]), found)
    Console().print(table(found), measured.table())
    if output:
        measured.write(output)
    if plot:
        draw(found, plot)


def main() -> None:
    """The `maskcast` command: an error of ours is one sentence on stderr and exit code 1."""
    try:
        app()
    except MaskcastError as error:
        print(f"maskcast: {error}", file=sys.stderr)
        sys.exit(1)


def _settings(config: Path | None, port: int | None) -> Settings:
    from deployments.config import load_settings
    from deployments.ports import free_port

    settings = load_settings(config)
    http = settings.http.model_copy(update={} if port is None else {"port": port})
    if not http.port:
        http = http.model_copy(update={"port": free_port(http.host)})
    return settings.model_copy(update={"http": http})


def _cluster(settings: Settings, progress: Progress, interrupts: Interrupts) -> LocalCluster | AttachedCluster:
    from deployments.attached import AttachedCluster
    from deployments.local import LocalCluster

    if address := os.environ.get("RAY_ADDRESS"):
        return AttachedCluster(settings, progress, address)
    return LocalCluster(settings, progress, after_ray=interrupts.arm)


def _show(cluster: LocalCluster | AttachedCluster, settings: Settings, interrupts: Interrupts, once: bool) -> None:
    from rich.console import Console

    from deployments.errors import StartError
    from deployments.sample import Sample

    console = Console()
    Sample(cluster.url, settings.model.served_name, [key.get_secret_value() for key in settings.http.api_keys], console).run()
    if once:
        return
    console.print(f"Serving at {cluster.url}/v1 as {settings.model.served_name!r}; Ctrl-C stops it.", highlight=False, markup=False)
    try:
        raise StartError(interrupts.wait(cluster.fault))
    except KeyboardInterrupt:  # the way to end it
        return
