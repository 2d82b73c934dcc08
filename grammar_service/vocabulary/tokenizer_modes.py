"""How vLLM (0.32: `tokenizers/registry.py`) reads a model's tokenizer: by Mistral's own files, or as others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

AUTO, MISTRAL, OTHER = "auto", "mistral", "hf"
"""vLLM's names of how a tokenizer is read."""
TEKKEN = "tekken.json"
WEIGHTS = "consolidated*.safetensors"


def mode_of(files: Iterable[str], mode: str) -> str:
    """Which one vLLM chooses where the operator's is `mode`. `files`: of the tokenizer's folder or repository, by their paths."""
    names = [Path(file).name for file in files]
    has_weights = any(fnmatch(name, WEIGHTS) for name in names)
    if mode == AUTO and has_weights and any(name == TEKKEN or fnmatch(name, "tokenizer.model.v*") for name in names):
        return MISTRAL
    return OTHER if mode == AUTO else mode


def mistral_width(folder: Path) -> int | None:
    """How many tokens the model has, by the configuration that goes with weights of Mistral's; None: there is none."""
    params = folder / "params.json"
    told = json.loads(params.read_text(encoding="utf-8")) if params.is_file() else {}
    return int(told["vocab_size"]) if "vocab_size" in told else None
