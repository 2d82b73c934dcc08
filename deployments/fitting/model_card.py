"""What a model's own files say of it: its configuration and its chat template, from a folder or from the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployments.builders import path_of
from deployments.config_model import SMOLLM2, names_folder
from deployments.errors import SettingsError

CONFIG, TOKENIZER, TEMPLATE, OLD_TEMPLATE = "config.json", "tokenizer_config.json", "chat_template.jinja", "chat_template.json"
LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length", "model_max_length")
"""What configurations call the longest context (vLLM 0.32, `config/model.py`)."""


@dataclass(frozen=True)
class ModelCard:
    """`context_length` in tokens, None: the configuration does not say. `template`: of chats, empty: there is none."""

    context_length: int | None
    architectures: tuple[str, ...]
    template: str


def read_card(path: str) -> ModelCard:
    """Of the model that `model.path` names.

    Raises:
        SettingsError: it has no configuration that can be read here.
    """
    folder = _folder(path)
    config = _json(folder, CONFIG)
    if not config:
        advice = "; `maskcast serve smollm2` makes it, once for each user of each machine" if path == SMOLLM2 else ""
        raise SettingsError(f"settings: model.path: {path} has no {CONFIG} that can be read here{advice}")
    return ModelCard(_context_length(config), tuple(config.get("architectures") or ()), "\n".join(_templates(folder)))


def _folder(path: str) -> Path:
    place = path_of(path)
    return Path(place).expanduser() if names_folder(place) else _from_hub(place)


def _from_hub(name: str) -> Path:
    """The folder of the hub's cache that has these files, where the hub has them. Without a network, what is in the cache."""
    from huggingface_hub import snapshot_download  # takes half a second, and most services need none of it
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=[CONFIG, TOKENIZER, TEMPLATE, OLD_TEMPLATE]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SettingsError(
            f"settings: model.path: {name} is no folder, and cannot be had from the Hugging Face hub ({reason}); "
            "a model that needs a token: set HF_TOKEN"
        ) from None


def _json(folder: Path, name: str) -> dict[str, Any]:
    try:
        found = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _templates(folder: Path) -> Iterator[str]:
    """Where files of several years keep it: one text, or several by name."""
    file = folder / TEMPLATE
    if file.is_file():
        yield file.read_text(encoding="utf-8", errors="replace")
        return
    for name in (TOKENIZER, OLD_TEMPLATE):
        found = _json(folder, name).get("chat_template")
        if isinstance(found, str):
            yield found
        elif isinstance(found, list):
            yield from (each["template"] for each in found if isinstance(each, dict) and isinstance(each.get("template"), str))


def _context_length(config: Mapping[str, Any]) -> int | None:
    text = config.get("text_config")
    config = {**config, **text} if isinstance(text, dict) else config
    lengths = [config[name] for name in LENGTHS if isinstance(config.get(name), int)]
    return min(lengths) if lengths else None
