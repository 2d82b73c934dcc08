"""A vocabulary is read as the engine's arguments say, wherever its files are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grammar_service.vocabulary.source import TokenizerSource
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, save_tiny_model


@pytest.mark.parametrize(
    ("arguments", "source"),
    [
        ({}, TokenizerSource("model")),
        ({"tokenizer": "other", "revision": "a"}, TokenizerSource("model", "other", "a", "a")),
        ({"revision": "a", "tokenizer_revision": "b"}, TokenizerSource("model", "", "a", "b")),
        ({"trust_remote_code": True, "hf_overrides": {"vocab_size": 9}}, TokenizerSource("model", trust_remote_code=True, vocab_size=9)),
        ({"hf_overrides": {"vocab_size": "9"}}, TokenizerSource("model")),
        ({"hf_overrides": {"text_config": {"vocab_size": 9}}}, TokenizerSource("model", vocab_size=9)),
        ({"revision": "a", "tokenizer_revision": None}, TokenizerSource("model", "", "a", "a")),
    ],
)
def test_engine_arguments_name_it(arguments: dict[str, Any], source: TokenizerSource) -> None:
    assert TokenizerSource.of("model", arguments) == source


def test_its_tokens_may_be_of_one_folder_and_their_number_of_another(tmp_path: Path) -> None:
    tokenizer, model = save_tiny_model(tmp_path / "tokenizer"), tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": VOCAB_SIZE + 5}))
    loaded = GrammarTokenizer.load(TokenizerSource(str(model), str(tokenizer)))
    assert loaded.vocab_size == VOCAB_SIZE + 5
    assert loaded.vocabulary[:VOCAB_SIZE] == GrammarTokenizer.load(tokenizer).vocabulary
    assert GrammarTokenizer.load(TokenizerSource(str(model), str(tokenizer), vocab_size=VOCAB_SIZE)).vocab_size == VOCAB_SIZE


def test_a_configuration_of_an_unknown_kind_tells_the_number_all_the_same(tmp_path: Path) -> None:
    folder = Path(save_tiny_model(tmp_path))
    (folder / "config.json").write_text(json.dumps({"model_type": "nobody_knows", "text_config": {"vocab_size": VOCAB_SIZE + 1}}))
    assert GrammarTokenizer.load(TokenizerSource(str(folder))).vocab_size == VOCAB_SIZE + 1


def test_folders_are_there_already_and_a_name_that_cannot_be_had_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    source = TokenizerSource(str(tmp_path), "nobody/nothing")
    assert source.downloaded() == source
