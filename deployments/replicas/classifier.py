"""A Hugging Face sequence classifier as a reward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from deployments.errors import SettingsError


class Classifier:
    """`path`: a folder, or a name on the hub; `label`: by its name in the model's configuration, None: the model has one output; `batch`:
    texts in one forward. Raises SettingsError: the model has no such label, or several and none is named."""

    def __init__(self, path: str, label: str | None, batch: int, device: str = "cpu") -> None:
        self._tokenizer: Any = AutoTokenizer.from_pretrained(path)
        self._model: Any = AutoModelForSequenceClassification.from_pretrained(path).eval().to(device)
        config = self._model.config
        if config.pad_token_id is None:  # decoders have none, and look for the last token that is no padding
            self._tokenizer.pad_token = self._tokenizer.pad_token or self._tokenizer.eos_token
            config.pad_token_id = self._tokenizer.pad_token_id
        self._label = None if config.num_labels == 1 and label is None else _number(dict(config.id2label), label, path)
        self._most = min(int(getattr(config, "max_position_embeddings", 0) or 512), int(self._tokenizer.model_max_length))
        self._batch = batch

    @torch.inference_mode()
    def score(self, texts: Sequence[str]) -> list[float]:
        """The label's probability, or the sigmoid of the only output; from 0 to 1. Of a text that is too long, its beginning counts."""
        return [score for start in range(0, len(texts), self._batch) for score in self._some(texts[start : start + self._batch])]

    def _some(self, texts: Sequence[str]) -> list[float]:
        # A tokenizer may make nothing of an empty text, and no model computes nothing.
        given = [text or " " for text in texts]
        tokens = self._tokenizer(given, padding=True, truncation=True, max_length=self._most, return_tensors="pt").to(self._model.device)
        logits: torch.Tensor = self._model(**tokens).logits.float()
        found = logits[:, 0].sigmoid() if self._label is None else logits.softmax(-1)[:, self._label]
        return [float(score) for score in found.cpu()]


def _number(labels: dict[int, str], label: str | None, path: str) -> int:
    for number, name in labels.items():
        if name == label:
            return int(number)
    raise SettingsError(f"settings: the classifier {path} has the labels {', '.join(labels.values())}; `label` must name one")
