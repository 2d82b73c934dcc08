from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grammar_service.conformance.instances import read_instance
from grammar_service.errors import UnusableFile


def read(folder: Path, name: str, text: str) -> Any:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return read_instance(file)


def test_yaml_is_read_by_version_1_2(tmp_path: Path) -> None:
    text = "on: yes\nwhen: 2024-02-29\nmode: 010\nhex: 0x1F\nreal: 1e3\nnone:\nflag: true\ntext: '7'\n"
    assert read(tmp_path, "a.yaml", text) == {
        "on": "yes",
        "when": "2024-02-29",
        "mode": 10,
        "hex": 31,
        "real": 1000.0,
        "none": None,
        "flag": True,
        "text": "7",
    }


def test_names_of_members_are_text(tmp_path: Path) -> None:
    assert read(tmp_path, "a.yml", "7: a\ntrue: b\n~: c\n") == {"7": "a", "true": "b", "null": "c"}


def test_toml_dates_are_text(tmp_path: Path) -> None:
    assert read(tmp_path, "a.toml", "day = 2024-02-29\n[[part]]\nsize = 1\n") == {"day": "2024-02-29", "part": [{"size": 1}]}


@pytest.mark.parametrize(("name", "text"), [("a.json", "{"), ("a.yaml", "a: [1"), ("a.yaml", "a: !thing 1"), ("a.toml", "a =")])
def test_a_file_without_a_value_is_an_error(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(UnusableFile):
        read(tmp_path, name, text)
