"""A tiny model of random weights in Mistral's own files: a Tekken vocabulary, or one of SentencePiece, that `mistral_common` brings."""

from __future__ import annotations

import json
from importlib.metadata import files
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

TEKKEN_SIZE, SPECIALS = 8192, 100
SPM_SIZE = 32768
_NAMED = {32: "[ARGS]", 33: "[CALL_ID]", 34: "[THINK]", 35: "[/THINK]"}
_FIRST = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    *("[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]"),
    *("[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)


def data_file(name: str) -> Path:
    """One in the data folder of `mistral_common`."""
    return next(Path(str(file.locate())) for file in files("mistral_common") or () if file.name == name)


def save_tekken_model(folder: Path, version: str = "v13") -> Path:
    """The first tokens of a Tekken vocabulary, with the special tokens of that version."""
    folder.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = json.loads(data_file("tekken_240911.json").read_text(encoding="utf-8"))
    told.pop("image", None)
    sizes = {"default_vocab_size": TEKKEN_SIZE, "default_num_special_tokens": SPECIALS, "num_vocab_tokens": TEKKEN_SIZE - SPECIALS}
    told["config"] |= {"version": version, **sizes}
    told["vocab"] = told["vocab"][: TEKKEN_SIZE - SPECIALS]
    names = [*_FIRST, *(_NAMED.get(index, f"<SPECIAL_{index}>") for index in range(len(_FIRST), 36))]
    told["special_tokens"] = [{"rank": index, "token_str": name, "is_control": True} for index, name in enumerate(names)]
    (folder / "tekken.json").write_text(json.dumps(told), encoding="utf-8")
    return _with_model(folder, TEKKEN_SIZE)


def save_sentencepiece_model(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.model.v3").write_bytes(data_file("mistral_instruct_tokenizer_240323.model.v3").read_bytes())
    return _with_model(folder, SPM_SIZE)


def _with_model(folder: Path, size: int) -> Path:
    """The shape; `load_format: dummy` makes the weights, of which there must be a file all the same."""
    shape = {"dim": 64, "n_layers": 2, "head_dim": 32, "hidden_dim": 128, "n_heads": 2, "n_kv_heads": 1}
    others = {"rope_theta": 10000.0, "norm_eps": 1e-5, "max_position_embeddings": 2048, "dtype": "float32", "vocab_size": size}
    (folder / "params.json").write_text(json.dumps({**shape, **others}), encoding="utf-8")
    save_file({}, str(folder / "consolidated.safetensors"))
    return folder
