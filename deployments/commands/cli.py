"""The command line. Each command imports what it needs when it runs: `--help` takes 0.2 s so, and 2 s with Ray and the API behind it."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.commands.grammar import commands as grammar_commands
from deployments.commands.lookahead import tuning
from grammar_service.errors import MaskcastError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="Structured decoding on Ray and vLLM.")
app.add_typer(grammar_commands.app, name="grammar")
app.add_typer(tuning.app, name="lookahead")


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, options_metavar="[MODEL] [OPTIONS] [VLLM'S ARGUMENTS]"
)
def serve(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option(help="YAML settings; the environment (MASKCAST_…) overrides them")] = None,
    once: Annotated[bool, typer.Option("--once", help="stop after the sample request")] = False,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="HTTP port; overrides the settings; 0: any that is free")] = None,
    replicas: Annotated[int | None, typer.Option(min=1, help="engines")] = None,
    gpus: Annotated[float | None, typer.Option(min=0, max=1, help="GPUs of each worker; 0: none, a part of one: it is shared")] = None,
    print_settings: Annotated[bool, typer.Option("--print-settings", help="write what would be served, as YAML, and end")] = False,
) -> None:
    """Serve MODEL (a folder, a name on the Hugging Face hub, `smollm2` or `embedded`) on this machine, or on the Ray cluster of
    RAY_ADDRESS: start everything, show one extraction, answer until Ctrl-C. Engine arguments have the names that they have after
    `vllm serve`: --tensor-parallel-size 2 --max-model-len 8k"""
    from deployments.commands import serve_settings, serving
    from deployments.local.progress import Progress

    progress = Progress(Console(stderr=True))
    given = {"http": {"port": port}, "model": {"num_replicas": replicas, "gpus_per_worker": gpus}}
    settings = serve_settings.read_settings(config, context.args, given, progress)
    if print_settings:
        print(serve_settings.as_yaml(settings), end="")
    else:
        serving.serve(settings, progress, once=once)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, options_metavar="[MODEL] [OPTIONS] [VLLM'S ARGUMENTS]"
)
def batch(
    context: typer.Context,
    requests: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSON lines in OpenAI's batch format")],
    output: Annotated[
        Path, typer.Option("--output", "-o", dir_okay=False, help="a line for each request; those it has are not sent again")
    ],
    url: Annotated[str | None, typer.Option(help="of a service that runs, without /v1; else one is started for MODEL")] = None,
    key: Annotated[str | None, typer.Option(envvar="MASKCAST_API_KEY", help="an API key of the service at URL")] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=4096, help="requests at a time")] = 64,
    config: Annotated[Path | None, typer.Option(help="YAML settings of the service that is started")] = None,
) -> None:
    """Answer a file of requests. The exit code is 0 only if all are answered; an interrupted run goes on where it was."""
    from deployments.commands.batch import run_batch
    from deployments.commands.progress import CaseProgress

    def run(at: str, its_key: str | None) -> None:
        with CaseProgress(Console(stderr=True)) as bar:
            counts = run_batch(requests, output, at, its_key, concurrency, lambda done, total: bar.show("requests", done, total))
        print(f"maskcast: {counts.answered} answered, {counts.failed} failed, {counts.skipped} answered before", file=sys.stderr)
        raise typer.Exit(0 if not counts.failed else 1)

    if url is not None:
        run(url, key)
    # These import Ray, which takes 1.2 s; a service that runs needs none of it.
    from deployments.commands import serve_settings, serving
    from deployments.local.progress import Progress

    progress = Progress(Console(stderr=True))
    found = serve_settings.read_settings(config, context.args, {"http": {"port": 0}}, progress)
    serving.serve_for(found, progress, run)


@app.command()
def status(
    url: Annotated[str, typer.Option(help="where the service listens")] = "http://127.0.0.1:8000",
    watch: Annotated[bool, typer.Option("--watch", help="show engines, counters and tenants until Ctrl-C")] = False,
    key: Annotated[str | None, typer.Option(envvar="MASKCAST_API_KEY", help="an API key with the scope metrics, for --watch")] = None,
) -> None:
    """Show what runs; the exit code is 0 only if requests are answered."""
    from deployments.commands.status import read_status, show_status, watch_cluster

    if watch:
        with suppress(KeyboardInterrupt):
            watch_cluster(url, key, Console())
        return
    readiness, ready = read_status(url)
    show_status(readiness, Console())
    raise typer.Exit(0 if ready else 1)


@app.command()
def drain(
    within: Annotated[float, typer.Option(min=1, help="seconds; then it is over whatever is left")] = 660.0,
    node: Annotated[str | None, typer.Option(help="id of another Ray node than this one")] = None,
) -> None:
    """Empty this node of the Ray cluster of RAY_ADDRESS before it ends; the exit code is 0 only if no replica is left on it."""
    from deployments.commands import draining

    def show(count: int) -> None:
        print(f"maskcast: {count} replicas are still on the node", file=sys.stderr)

    raise typer.Exit(0 if draining.drain(within, node, show) else 1)


@app.command()
def key(
    name: Annotated[str, typer.Argument(help="the tenant's, for metrics and logs")],
    scope: Annotated[list[str] | None, typer.Option(help="generate, grammars:write, metrics, admin; may be given again")] = None,
    weight: Annotated[float, typer.Option(help="share beside other tenants")] = 1.0,
) -> None:
    """Make an API key: it is shown once, on stderr; its entry for http.api_keys_file, which does not tell it, goes to stdout."""
    from deployments.access.key_file import entry_text, new_key

    made = new_key()
    text = entry_text(made, name, scope or ["generate"], weight)
    print(text, end="")
    print(f"{made}\nThis is the key of {name!r}. It cannot be shown again.", file=sys.stderr)


@app.command()
def simulate(
    replicas: Annotated[int, typer.Option(min=2, help="model replicas")] = 64,
    schemas: Annotated[int, typer.Option(min=1, help="different schemas, asked for by Zipf's law")] = 5000,
    seconds: Annotated[float, typer.Option(min=0.5, help="how long requests arrive, in simulated time")] = 5.0,
    rate: Annotated[float, typer.Option(min=0.1, help="requests a second and replica")] = 30.0,
    zipf: Annotated[float, typer.Option(min=0.0, help="exponent of popularity; 0: all schemas alike")] = 1.0,
    unkeyed: Annotated[float, typer.Option(min=0.0, max=1.0, help="share of requests without a schema")] = 0.1,
    routers: Annotated[int, typer.Option(min=1, help="processes that route independently")] = 4,
    scenario: Annotated[str | None, typer.Option(help="only the one of this name: steady, burst, cpu, hang, …")] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="play these requests instead: JSON lines of at_s, key, prompt_tokens, output_tokens"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="the same seed plays the same")] = 0,
    without: Annotated[list[str] | None, typer.Option(help="take this heuristic out of our policy; may be given again")] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="take out each heuristic in turn, for two seeds; takes minutes")] = False,
    output: Annotated[Path | None, typer.Option("--json", dir_okay=False, help="write the figures there")] = None,
    plot: Annotated[Path | None, typer.Option(dir_okay=False, help="draw them there, as PNG")] = None,
) -> None:
    """Compare ways of routing on as many simulated replicas as you like; no service needs to run."""
    from deployments.commands import ablation, simulation
    from deployments.commands.progress import CaseProgress
    from router.simulation.scenarios import Size

    size = Size(replicas, schemas, seconds, rate, zipf, unkeyed, routers)
    command = " ".join(["maskcast", *sys.argv[1:]])
    with CaseProgress(Console(stderr=True)) as progress:
        if ablate:
            seeds = {each: simulation.scenarios(size, each, trace, scenario) for each in (seed, seed + 1)}
            ablated = [one for each, played in seeds.items() for one in ablation.ablate(played, each, progress.show)]
            shown, measured = ablation.table(ablated), ablation.report(command, ablated)
        else:
            found = simulation.simulate(simulation.scenarios(size, seed, trace, scenario), seed, progress.show, without or ())
            shown, measured = simulation.table(found), simulation.report(command, found)
    Console().print(shown, measured.table())
    if output:
        measured.write(output)
    if plot and not ablate:
        simulation.draw(found, plot)


def main() -> None:
    """The `maskcast` command: an error of ours is one sentence on stderr and exit code 1."""
    try:
        app()
    except MaskcastError as error:
        print(f"maskcast: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
