"""`maskcast serve`: everything on this machine, or the application on a Ray cluster that somebody else runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx
import typer
from rich.console import Console

from deployments.config import Settings
from deployments.config_model import EMBEDDED
from deployments.constraints.model_parsers import refusals
from deployments.errors import StartError
from deployments.fitting import Fit
from deployments.local.interrupts import Interrupts
from deployments.local.local import LocalCluster
from deployments.local.progress import Progress
from deployments.local.sample import EXERCISE, MESSAGE, Sample, await_ready

if TYPE_CHECKING:
    from deployments.local.attached import AttachedCluster

INTERRUPTED = 130


def serve(found: Fit, progress: Progress, *, once: bool) -> None:
    """Returns when the service has ended; Ctrl-C before it answers is exit code 130. Raises MaskcastError."""
    _run(found, progress, lambda cluster, interrupts: _show(cluster, found.settings, interrupts, once))


def serve_for(found: Fit, progress: Progress, work: Callable[[str, str | None], None]) -> None:
    """A service for as long as `work` takes, which gets its URL and an API key. Raises as `serve`."""
    keys = [key.get_secret_value() for key in found.settings.http.api_keys]

    def run(cluster: LocalCluster | AttachedCluster, _: Interrupts) -> None:
        with httpx.Client(base_url=cluster.url, trust_env=False) as client:
            await_ready(client)
        work(cluster.url, keys[0] if keys else None)

    _run(found, progress, run)


def _run(found: Fit, progress: Progress, work: Callable[[LocalCluster | AttachedCluster, Interrupts], None]) -> None:
    settings = found.settings
    for reason in found.reasons:
        progress.say(f"model.{reason}")
    for refusal in refusals(settings.model.tool_call_parser):
        progress.say(refusal)
    with Interrupts() as interrupts:
        cluster = _cluster(settings, progress, interrupts)
        try:
            cluster.start()
            work(cluster, interrupts)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        finally:
            interrupts.mute()
            cluster.stop()


def _cluster(settings: Settings, progress: Progress, interrupts: Interrupts) -> LocalCluster | AttachedCluster:
    if address := os.environ.get("RAY_ADDRESS"):
        from deployments.local.attached import AttachedCluster  # imports Ray, which a cluster of our own must not do so early

        return AttachedCluster(settings, progress, address)
    return LocalCluster(settings, progress, after_ray=interrupts.arm)


def _show(cluster: LocalCluster | AttachedCluster, settings: Settings, interrupts: Interrupts, once: bool) -> None:
    console = Console()
    keys = [key.get_secret_value() for key in settings.http.api_keys]
    extraction = EXERCISE if settings.model.path == EMBEDDED else MESSAGE
    sample = Sample(cluster.url, settings.model.served_name, keys, console, extraction)
    if settings.http.api_keys_file and not keys:
        sample.await_ready()
    else:
        sample.run()
    if once:
        return
    from deployments.local.rollout import engine_in_words  # imports Ray, which reads the environment that the cluster has made

    engine = engine_in_words(settings)
    told = [f"Serving at {cluster.url}/v1 as {settings.model.served_name!r}; Ctrl-C stops it.", *([f"It has {engine}."] if engine else [])]
    console.print("\n".join(told), highlight=False, markup=False, soft_wrap=True)
    try:
        raise StartError(interrupts.wait(cluster.fault))
    except KeyboardInterrupt:  # the way to end it
        return
