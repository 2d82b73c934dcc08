"""`maskcast serve`: everything on this machine, or the application on a Ray cluster that somebody else runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
import yaml
from rich.console import Console

from deployments.commands.engine_flags import read_engine_flags
from deployments.config import Settings, load_settings, parse_settings
from deployments.errors import StartError
from deployments.fitting import Fit, fit
from deployments.local.interrupts import Interrupts
from deployments.local.local import LocalCluster
from deployments.local.ports import free_port
from deployments.local.preflight import count_gpus
from deployments.local.progress import Progress
from deployments.local.sample import Sample
from deployments.secret_file import Tree, merged, plain, public

if TYPE_CHECKING:
    from deployments.local.attached import AttachedCluster

INTERRUPTED = 130


def read_settings(config: Path | None, words: Sequence[str], given: Tree) -> Fit:
    """Those of the file under the environment under the command line: `words` are a model and vLLM's arguments, `given` our own, None where
    nothing was said. What they leave open is filled in.

    Raises:
        SettingsError: a setting or an argument is unknown or wrong, or the model cannot be read.
    """
    settings = load_settings(config)
    tree = merged(plain(settings), merged(read_engine_flags(words), _said(given)))
    settings = parse_settings(tree)
    if not settings.http.port:
        settings = settings.model_copy(update={"http": settings.http.model_copy(update={"port": free_port(settings.http.host)})})
    return fit(settings, None if os.environ.get("RAY_ADDRESS") else count_gpus())


def as_yaml(found: Fit) -> str:
    """For a file of settings: all that is not as it would be anyway, but for secrets, which belong into the environment or a file of their
    own."""
    reasons = "".join(f"# model.{reason}\n" for reason in found.reasons)
    return reasons + yaml.safe_dump(public(found.settings), sort_keys=True, allow_unicode=True)


def serve(found: Fit, *, once: bool) -> None:
    """Returns when the service has ended; Ctrl-C before it answers is exit code 130. Raises MaskcastError."""
    settings = found.settings
    progress = Progress(Console(stderr=True))
    for reason in found.reasons:
        progress.say(f"model.{reason}")
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


def _said(given: Tree) -> Tree:
    """Without what nobody has said."""
    sections = {section: {name: value for name, value in names.items() if value is not None} for section, names in given.items()}
    return {section: names for section, names in sections.items() if names}


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
    from deployments.local.rollout import engine_in_words  # imports Ray, which reads the environment that the cluster has made

    engine = engine_in_words(settings)
    told = [f"Serving at {cluster.url}/v1 as {settings.model.served_name!r}; Ctrl-C stops it.", *([f"It has {engine}."] if engine else [])]
    console.print("\n".join(told), highlight=False, markup=False, soft_wrap=True)
    try:
        raise StartError(interrupts.wait(cluster.fault))
    except KeyboardInterrupt:  # the way to end it
        return
