"""A tokenizer's files on this machine, from the Hugging Face hub where they are not here yet."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import snapshot_download

FILES = ("*.json", "*.model", "*.txt", "*.jinja")
"""What tokenizers and configurations are in; not the weights."""


def tokenizer_folder(path: str) -> str:
    """The folder of a model that is named by its folder, or by its name on the hub: this process may have the means to get it, so that
    others, who read it, need none. Where it cannot be had, the name: who reads it finds out why."""
    if Path(path).exists():
        return path
    try:
        return snapshot_download(path, allow_patterns=list(FILES))
    except (OSError, ValueError):
        return path
