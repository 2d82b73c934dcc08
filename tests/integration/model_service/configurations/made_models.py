"""Models that are made of the embedded one: its weights in another form, or with something beside them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, Blip2Config, Blip2ForConditionalGeneration, Blip2Processor, LlamaConfig
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

from deployments.builders import EMBEDDED_WEIGHTS

WEIGHTS = "model.safetensors"
BITS = 8
IMAGE_TOKENS, EDGE = 4, 28
"""Of an image in a prompt; and what it is scaled to, in pixels."""


def reasoning_model(folder: Path) -> Path:
    """It has other names for the tokens around a tool call: those that models of DeepSeek reason between."""
    return _renamed(folder, "tool_call>", "think>")


def thinking_model(folder: Path) -> Path:
    """As a Qwen3: it reasons between marks, and has one that begins a tool call, which is the embedded model's padding."""
    _renamed(folder, "tool_call>", "think>")
    for file in folder.glob("*.json"):
        file.write_text(file.read_text(encoding="utf-8").replace("<|pad|>", "<tool_call>"), encoding="utf-8")
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    for token in tokenizer["added_tokens"]:
        token["special"] = token["special"] and token["content"] != "<tool_call>"
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


def kimi_model(folder: Path) -> Path:
    """It has other names for the tokens around a tool call, and for its padding: those that Kimi K3 has around the names of channels."""
    return _with_special_tokens(folder, {"</tool_call>": "<|close|>", "<tool_call>": "<|open|>", "<|pad|>": "<|sep|>"})


def mistral_model(folder: Path) -> Path:
    """It has other names for the tokens around a tool call, and for its padding: those that Mistral's models reason between, and the one
    that begins their calls."""
    return _with_special_tokens(folder, {"</tool_call>": "[/THINK]", "<tool_call>": "[THINK]", "<|pad|>": "[TOOL_CALLS]"})


def minimax_model(folder: Path) -> Path:
    """It reasons between MiniMax M3's marks."""
    return _renamed(folder, "tool_call>", "mm:think>")


def adapter(folder: Path, strength: float) -> Path:
    """One of LoRA's, which says nothing that makes sense."""
    config = _config(EMBEDDED_WEIGHTS)
    chance, width, rank = np.random.default_rng(7), config["hidden_size"], 8
    shapes = {"lora_A": (rank, width), "lora_B": (width, rank)}
    names = [f"base_model.model.model.layers.{layer}.self_attn.q_proj" for layer in range(config["num_hidden_layers"])]
    folder.mkdir()
    weights = {
        f"{name}.{part}.weight": torch.from_numpy((strength * chance.standard_normal(shape)).astype(np.float32))
        for name in names
        for part, shape in shapes.items()
    }
    save_file(weights, folder / "adapter_model.safetensors")
    told = {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "target_modules": ["q_proj"], "bias": "none", "task_type": "CAUSAL_LM"}
    (folder / "adapter_config.json").write_text(json.dumps(told))
    return folder


def model_with_eagle(folder: Path) -> tuple[Path, Path]:
    """The embedded model, whose last norm's weights are in its head, and an EAGLE that drafts what it says: the same layers, behind one
    that changes nothing (EAGLE's first layer has no norm ahead of its attention). It looks at tokens alone, and sees one less."""
    model, drafter = folder / "model", folder / "drafter"
    shutil.copytree(EMBEDDED_WEIGHTS, model)
    config, weights = {**_config(model), "tie_word_embeddings": False}, load_file(model / WEIGHTS)
    words, norm, ahead = weights["model.embed_tokens.weight"], weights["model.norm.weight"], "model.layers."
    save_file({**weights, "lm_head.weight": words * norm, "model.norm.weight": torch.ones_like(norm)}, model / WEIGHTS)
    (model / "config.json").write_text(json.dumps(config))
    drafter.mkdir()
    named = {name.removeprefix(ahead).partition(".")[::2]: weight for name, weight in weights.items() if name.startswith(ahead)}
    layers = {f"layers.{int(layer) + 1}.{name}": weight for (layer, name), weight in named.items()}
    first = {name: torch.zeros_like(weight) for (layer, name), weight in named.items() if layer == "0" and name != "input_layernorm.weight"}
    layers |= {f"layers.0.{name}": weight for name, weight in first.items()}
    save_file({**layers, "fc.weight": torch.eye(len(norm), 2 * len(norm)).to(words)}, drafter / WEIGHTS)
    (drafter / "config.json").write_text(json.dumps({**config, "num_hidden_layers": config["num_hidden_layers"] + 1}))
    return model, drafter


def quantized_model(folder: Path) -> Path:
    """Weights of 8 bits, a scale for each row, and activations that are quantized as they come."""
    shutil.copytree(EMBEDDED_WEIGHTS, folder)
    weights: dict[str, torch.Tensor] = {}
    for name, weight in load_file(folder / WEIGHTS).items():
        weights[name] = weight
        if name.endswith("_proj.weight"):
            scales = weight.float().abs().amax(dim=1, keepdim=True) / (2 ** (BITS - 1) - 1)
            weights |= {name: (weight / scales).round().to(torch.int8), f"{name}_scale": scales}
    save_file(weights, folder / WEIGHTS)
    of_weights = {"num_bits": BITS, "type": "int", "symmetric": True, "strategy": "channel", "dynamic": False}
    group = {"targets": ["Linear"], "weights": of_weights, "input_activations": {**of_weights, "strategy": "token", "dynamic": True}}
    told = {"quant_method": "compressed-tensors", "format": "int-quantized", "quantization_status": "compressed", "ignore": ["lm_head"]}
    config = _config(folder) | {"quantization_config": {**told, "config_groups": {"group_0": group}}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def padded_model(folder: Path, padding: int) -> Path:
    """Without weights (`load_format: dummy`), and computed as a ChatGLM is, whose logits are of `padded_vocab_size`, whatever `vocab_size`
    says."""
    shutil.copytree(EMBEDDED_WEIGHTS, folder, ignore=shutil.ignore_patterns(WEIGHTS))
    config = _config(folder)
    of_glm = {
        "num_layers": 1,
        "ffn_hidden_size": config["intermediate_size"],
        "kv_channels": config["head_dim"],
        "multi_query_group_num": 1,
        "hidden_dropout": 0.0,
        "layernorm_epsilon": config["rms_norm_eps"],
        "padded_vocab_size": config["vocab_size"] + padding,
    }
    no = (
        "add_bias_linear",
        "add_qkv_bias",
        "apply_residual_connection_post_layernorm",
        "multi_query_attention",
        "fp32_residual_connection",
    )
    of_glm |= {**dict.fromkeys(no, False), **dict.fromkeys(("rmsnorm", "post_layer_norm", "original_rope"), True)}
    told = {**config, "num_hidden_layers": 1, "architectures": ["ChatGLMModel"], **of_glm}
    (folder / "config.json").write_text(json.dumps(told))
    return folder


def seeing_model(folder: Path) -> Path:
    """A BLIP-2, of vLLM's models with images the one that needs least beside its text model; its eyes have random weights."""
    _renamed(folder, "<tool_call>", "<image>")
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = Blip2Config(
        vision_config={**tower, "image_size": EDGE, "patch_size": EDGE // 2},
        qformer_config={**tower, "encoder_hidden_size": tower["hidden_size"], "cross_attention_frequency": 1},
        text_config=LlamaConfig.from_pretrained(EMBEDDED_WEIGHTS).to_dict(),
        num_query_tokens=IMAGE_TOKENS,
        architectures=["Blip2ForConditionalGeneration"],
    )
    with torch.device("meta"):
        shapes = {name: weight.shape for name, weight in Blip2ForConditionalGeneration(config).state_dict().items()}
    chance, text = torch.Generator().manual_seed(0), "language_model."
    eyes = {name: 0.3 * torch.randn(shape, generator=chance) for name, shape in shapes.items() if not name.startswith(text)}
    save_file({**eyes, **{text + name: weight for name, weight in load_file(EMBEDDED_WEIGHTS / WEIGHTS).items()}}, folder / WEIGHTS)
    config.save_pretrained(folder)
    reader = BlipImageProcessorPil(size={"height": EDGE, "width": EDGE})
    Blip2Processor(reader, AutoTokenizer.from_pretrained(folder), num_query_tokens=IMAGE_TOKENS).save_pretrained(folder)
    return folder


def _renamed(folder: Path, token: str, name: str) -> Path:
    shutil.copytree(EMBEDDED_WEIGHTS, folder)
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text(encoding="utf-8").replace(token, name), encoding="utf-8")
    return folder


def _with_special_tokens(folder: Path, names: Mapping[str, str]) -> Path:
    """The embedded model, of whose added tokens some have other names."""
    shutil.copytree(EMBEDDED_WEIGHTS, folder)
    for file in folder.glob("*.json*"):
        text = file.read_text(encoding="utf-8")
        for ours, theirs in names.items():
            text = text.replace(ours, theirs)
        file.write_text(text, encoding="utf-8")
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    for token in tokenizer["added_tokens"]:
        token["special"] = True
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


def _config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config
