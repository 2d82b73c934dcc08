"""Trains the embedded model from nothing: `python -m model_service.embedded.train --out DIR`.

A small Llama learns to copy the facts that a question asks for into JSON. The loss is on the answers only. Matrices are
trained with Muon, the rest with AdamW.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from model_service.embedded.muon import Muon
from model_service.embedded.shape import llama_config
from model_service.embedded.tasks import Exercise, exercises
from model_service.embedded.tokenizer import train_tokenizer

SEED = 20
POOL = 32  # batches that are drawn together and sorted by length, so that padding is rare
IGNORED = -100
Batch: TypeAlias = tuple[Tensor, Tensor]
"""Token ids and labels, int64 `[rows, length]`, padded on the right."""


def model_config(tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    return llama_config(len(tokenizer), bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)


def tool_schemas(exercise: Exercise) -> list[dict[str, object]] | None:
    """The exercise's tools as an OpenAI request would list them."""
    return [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {field: {} for field in fields}}}}
        for name, fields in exercise.tools.items()
    ] or None


def prompt_of(exercise: Exercise, tokenizer: PreTrainedTokenizerFast) -> str:
    messages = [{"role": "user", "content": exercise.question}]
    text = tokenizer.apply_chat_template(messages, tools=tool_schemas(exercise), tokenize=False, add_generation_prompt=True)
    return str(text)


def encode(exercise: Exercise, tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """Token ids, and the labels: the answer and its end, nothing of the prompt."""
    prompt = tokenizer.encode(prompt_of(exercise, tokenizer), add_special_tokens=False)
    answer = [*tokenizer.encode(exercise.answer, add_special_tokens=False), int(tokenizer.eos_token_id)]
    return prompt + answer, [IGNORED] * len(prompt) + answer


def batches(tokenizer: PreTrainedTokenizerFast, rows: int, seed: int) -> Iterator[Batch]:
    """Endless batches of exercises."""
    encoded = (encode(exercise, tokenizer) for exercise in exercises(seed, held_out=False))
    return batched(encoded, rows, random.Random(seed), int(tokenizer.pad_token_id))


def batched(encoded: Iterator[tuple[list[int], list[int]]], rows: int, rng: random.Random, padding: int) -> Iterator[Batch]:
    """Batches of what never ends, rows of alike length together."""
    while True:
        pool = sorted(islice(encoded, rows * POOL), key=lambda pair: len(pair[0]))
        groups = [pool[start : start + rows] for start in range(0, len(pool), rows)]
        rng.shuffle(groups)
        for group in groups:
            yield _pad([ids for ids, _ in group], padding), _pad([labels for _, labels in group], IGNORED)


def _pad(rows: list[list[int]], value: int) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)


def loss_of(model: LlamaForCausalLM, ids: Tensor, labels: Tensor) -> Tensor:
    """Mean cross entropy over the labelled positions; logits are computed only there."""
    hidden = model.model(ids, use_cache=False).last_hidden_state[:, :-1]
    wanted = labels[:, 1:] != IGNORED
    return nn.functional.cross_entropy(model.lm_head(hidden[wanted]).float(), labels[:, 1:][wanted])


def optimizers(model: LlamaForCausalLM, rate: float) -> list[torch.optim.Optimizer]:
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    rest = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    return [
        Muon(matrices, lr=rate),
        torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def rate_at(progress: float) -> float:
    """Share of the peak rate: linear warm-up over the first 2 %, then a cosine down to 2 %."""
    return progress / 0.02 if progress < 0.02 else 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (progress - 0.02) / 0.98))


def train(out: Path, *, steps: int, rows: int, rate: float, save_every: int, device: str) -> None:
    """Write tokenizer and weights (bfloat16) to `out`, every `save_every` steps and at the end."""
    torch.manual_seed(SEED)
    tokenizer = train_tokenizer(SEED, samples=40_000)
    tokenizer.save_pretrained(out)
    model = LlamaForCausalLM(model_config(tokenizer)).to(device)
    for step in fit(model, batches(tokenizer, rows, SEED + 1), steps=steps, rate=rate):
        if step % save_every == 0 or step == steps:
            save(model, out)


def fit(model: LlamaForCausalLM, data: Iterator[Batch], *, steps: int, rate: float) -> Iterator[int]:
    """Train on that many batches, at the end of a cosine that begins at `rate`. Yields after each step, counted from 1."""
    chosen = optimizers(model, rate)
    started, tokens = time.monotonic(), 0
    for step, (ids, labels) in enumerate(islice(data, steps), 1):
        for group in (g for optimizer in chosen for g in optimizer.param_groups):
            group["lr"] = rate * rate_at(step / steps)
        loss = loss_of(model, ids.to(model.device), labels.to(model.device))
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in chosen:
            optimizer.step()
            optimizer.zero_grad()
        tokens += ids.numel()
        if step % 50 == 0:
            print(f"step {step}/{steps} loss {loss.item():.4f} {tokens / (time.monotonic() - started):.0f} tokens/s", flush=True)
        yield step


def save(model: LlamaForCausalLM, out: Path) -> None:
    stored = LlamaForCausalLM(model.config)
    stored.load_state_dict(model.state_dict())
    stored.to(torch.bfloat16).save_pretrained(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--save-every", type=int, default=200)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    train(given.out, steps=given.steps, rows=given.rows, rate=given.rate, save_every=given.save_every, device=given.device)


if __name__ == "__main__":
    main()
