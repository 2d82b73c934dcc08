"""`maskcast serve`: everything on this machine, or the application on a Ray cluster that somebody else runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from deployments.config import Settings, load_settings
from deployments.errors import StartError
from deployments.local.interrupts import Interrupts
from deployments.local.local import LocalCluster
from deployments.local.ports import free_port
from deployments.local.progress import Progress
from deployments.local.sample import Sample

if TYPE_CHECKING:
    from deployments.local.attached import AttachedCluster

INTERRUPTED = 130


def serve(config: Path | None, port: int | None, *, once: bool) -> None:
    """Returns when the service has ended; Ctrl-C before it answers is exit code 130. Raises MaskcastError."""
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


def _settings(config: Path | None, port: int | None) -> Settings:
    settings = load_settings(config)
    http = settings.http.model_copy(update={} if port is None else {"port": port})
    if not http.port:
        http = http.model_copy(update={"port": free_port(http.host)})
    return settings.model_copy(update={"http": http})


def _cluster(settings: Settings, progress: Progress, interrupts: Interrupts) -> LocalCluster | AttachedCluster:
    if address := os.environ.get("RAY_ADDRESS"):
        from deployments.local.attached import AttachedCluster  # imports Ray, which a cluster of our own must not do so early

        return AttachedCluster(settings, progress, address)
    return LocalCluster(settings, progress, after_ray=interrupts.arm)


def _show(cluster: LocalCluster | AttachedCluster, settings: Settings, interrupts: Interrupts, once: bool) -> None:
    console = Console()
    keys = [key.get_secret_value() for key in settings.http.api_keys]
    sample = Sample(cluster.url, settings.model.served_name, keys, console)
    if settings.http.api_keys_file and not keys:
        sample.await_ready()
    else:
        sample.run()
    if once:
        return
    console.print(f"Serving at {cluster.url}/v1 as {settings.model.served_name!r}; Ctrl-C stops it.", highlight=False, markup=False)
    try:
        raise StartError(interrupts.wait(cluster.fault))
    except KeyboardInterrupt:  # the way to end it
        return
