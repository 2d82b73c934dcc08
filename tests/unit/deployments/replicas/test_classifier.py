"""A sequence classifier scores texts by a label, or by the one output that it has."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForSequenceClassification

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.errors import SettingsError
from deployments.replicas.classifier import Classifier

TEXTS = ["dog", "", "A dog that runs, and a cat that does not.", "cat " * 90, "dog"]
LABELS = {0: "rude", 1: "polite", 2: "neither"}


def saved(folder: Path, labels: dict[int, str]) -> Path:
    torch.manual_seed(4)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
    config = LlamaConfig(vocab_size=2048, max_position_embeddings=64, id2label=labels, **sizes)
    LlamaForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(EMBEDDED_WEIGHTS).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(saved(tmp_path_factory.mktemp("several"), LABELS))


def test_a_label_has_its_probability(several: str) -> None:
    scores = [Classifier(several, label, 32).score(TEXTS) for label in LABELS.values()]
    assert [sum(of_text) for of_text in zip(*scores, strict=True)] == pytest.approx([1] * len(TEXTS))
    assert all(0 < score < 1 for of_label in scores for score in of_label)
    assert scores[0][0] == pytest.approx(scores[0][-1], abs=1e-5)
    assert len({round(score, 6) for score in scores[0][:4]}) == 4


@pytest.mark.parametrize("batch", [1, 2])
def test_texts_that_are_computed_together_do_not_matter_to_each_other(several: str, batch: int) -> None:
    assert Classifier(several, "polite", batch).score(TEXTS) == pytest.approx(Classifier(several, "polite", 32).score(TEXTS), abs=1e-5)


def test_a_label_that_is_not_there_is_refused_with_those_that_are(several: str) -> None:
    for label in (None, "kind"):
        with pytest.raises(SettingsError, match="rude, polite, neither"):
            Classifier(several, label, 32)


def test_one_output_needs_no_label(tmp_path: Path) -> None:
    scores = Classifier(str(saved(tmp_path, {0: "LABEL_0"})), None, 32).score(TEXTS)
    assert all(0 < score < 1 for score in scores)
    assert Classifier(str(tmp_path), None, 32).score([]) == []
