from __future__ import annotations

import time
from pathlib import Path

import pytest
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from transformers import AutoConfig, AutoTokenizer

from grammar_service.errors import UnusableFile
from grammar_service.vocabulary.tekken import tekken_folder, tekken_source

TEXTS = [
    '{"name": "Ada", "age": 36}',
    "naïve café — 東京 🎉",
    "def f(x):\n    return x ** 2\n",
    "  spaces\t\tand 12345.678",
    "ALLCAPSandCamelCase",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tekken_folder(tmp_path_factory.mktemp("cache"))


def test_the_conversion_encodes_as_the_package_that_it_comes_from(folder: Path) -> None:
    ours = AutoTokenizer.from_pretrained(folder)
    theirs = Tekkenizer.from_file(tekken_source())
    for text in TEXTS:
        assert ours.encode(text, add_special_tokens=False) == theirs.encode(text, bos=False, eos=False)
        assert ours.decode(ours.encode(text, add_special_tokens=False)) == text


def test_the_folder_tells_the_size_and_the_end_of_a_text(folder: Path) -> None:
    theirs = Tekkenizer.from_file(tekken_source())
    assert AutoConfig.from_pretrained(folder).vocab_size == theirs.n_words == 131_072
    assert AutoTokenizer.from_pretrained(folder).eos_token_id == theirs.eos_id


def test_the_folder_is_made_once(folder: Path) -> None:
    made = (folder / "tokenizer.json").stat().st_mtime_ns
    assert made < time.time_ns()
    assert tekken_folder(folder.parent) == folder
    assert (folder / "tokenizer.json").stat().st_mtime_ns == made
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_missing_package_is_named() -> None:
    with pytest.raises(UnusableFile, match="no-such-package"):
        tekken_source("no-such-package")


def test_a_package_without_the_vocabulary_is_named() -> None:
    with pytest.raises(UnusableFile, match="rich"):
        tekken_source("rich")
