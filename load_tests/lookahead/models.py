"""The experiment's models, trained from nothing by the embedded model's training code: a target, and a draft of a tenth of its size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from load_tests.lookahead.concept_sets import concept_sets
from load_tests.lookahead.driving import Logits
from model_service.embedded.tokenizer import trained_on
from model_service.embedded.train import IGNORED, Batch, batched, fit
from model_service.lookahead.instructions import Tokens

VOCABULARY = 640
ROWS = 64
SEED = 11
CONTEXT = 256
AT_ONCE = 512
"""Texts in one forward."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`steps` of training at `rate`; `width / heads` is a size of heads that vLLM has kernels for on every device."""

    name: str
    width: int
    layers: int
    heads: int
    steps: int
    rate: float


TARGET = Shape("target", 128, 4, 4, steps=500, rate=6e-3)
DRAFT = Shape("draft", 64, 1, 2, steps=1200, rate=1e-2)


def prompt_of(concepts: Sequence[str]) -> str:
    return f"<|user|>{', '.join(concepts)}<|assistant|>"


def tokenizer_in(folder: Path) -> PreTrainedTokenizerFast:
    """The experiment's tokenizer, made where it is not there yet."""
    path = folder / "tokenizer"
    if not path.is_dir():
        sets = islice(concept_sets(SEED, held_out=False), 8000)
        texts = (text for one in sets for text in (", ".join(one.concepts), one.sentence))
        trained_on(texts, VOCABULARY).save_pretrained(path)
    tokenizer: PreTrainedTokenizerFast = PreTrainedTokenizerFast.from_pretrained(path)
    return tokenizer


def models_in(folder: Path, shapes: Sequence[Shape]) -> list[TorchLanguage]:
    """Models of those shapes; what is not there yet is trained, a process and a processor each. Every folder has the tokenizer beside the
    weights."""
    tokenizer_in(folder)
    missing = [shape for shape in shapes if not (folder / shape.name).is_dir()]
    if missing:
        with ProcessPoolExecutor(len(missing), mp_context=get_context("spawn")) as processes:
            list(processes.map(_train_in, [folder] * len(missing), missing))
    return [TorchLanguage(LlamaForCausalLM.from_pretrained(folder / shape.name, dtype=torch.float32).eval()) for shape in shapes]


def _train_in(folder: Path, shape: Shape) -> None:
    torch.set_num_threads(1)
    tokenizer, partial = tokenizer_in(folder), folder / f"{shape.name}.part"
    _train(shape, tokenizer).save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    partial.rename(folder / shape.name)


def _train(shape: Shape, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.width,
        intermediate_size=shape.width * 8 // 3 // 8 * 8,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    for _ in fit(model, _batches(tokenizer), steps=shape.steps, rate=shape.rate):
        pass
    return model


def _batches(tokenizer: PreTrainedTokenizerFast) -> Iterator[Batch]:
    return batched(_encoded(tokenizer), ROWS, Random(SEED), int(tokenizer.pad_token_id))


def _encoded(tokenizer: PreTrainedTokenizerFast) -> Iterator[tuple[list[int], list[int]]]:
    for drawn in concept_sets(SEED + 1, held_out=False):
        prompt = tokenizer.encode(prompt_of(drawn.concepts), add_special_tokens=False)
        answer = [*tokenizer.encode(drawn.sentence, add_special_tokens=False), int(tokenizer.eos_token_id)]
        yield prompt + answer, [IGNORED] * len(prompt) + answer


class TorchLanguage:
    """A model in this process, without a cache: every call computes its texts from their beginning."""

    def __init__(self, model: LlamaForCausalLM) -> None:
        self._model = model

    @torch.inference_mode()
    def logits(self, texts: Sequence[Tokens], last: Sequence[int]) -> list[Logits]:
        found: list[Logits] = []
        for start in range(0, len(texts), AT_ONCE):
            found += self._some(texts[start : start + AT_ONCE], last[start : start + AT_ONCE])
        return found

    def _some(self, texts: Sequence[Tokens], last: Sequence[int]) -> list[Logits]:
        padded = nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], batch_first=True)
        hidden = self._model.model(padded, use_cache=False).last_hidden_state
        rows = torch.cat([hidden[n, len(text) - count : len(text)] for n, (text, count) in enumerate(zip(texts, last, strict=True))])
        logits = self._model.lm_head(rows).float().numpy()
        return list(np.split(logits, np.cumsum(last)[:-1]))
