"""SmolLM2 as a folder that vLLM reads: whole or not at all. That it answers is shown end to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_service.embedded import smollm2


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_without_its_package_nothing_is_written_and_that_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "PACKAGE", "no_such_package")
    assert smollm2.gguf_file() is None
    with pytest.raises(FileNotFoundError, match="the package no-such-package is not installed"):
        smollm2.write_smollm2()
    assert not smollm2.is_written()
    assert list(home.iterdir()) == []


def test_a_file_that_cannot_be_read_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = home / "packages" / "broken_package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / smollm2.GGUF).write_bytes(b"no GGUF")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(smollm2, "PACKAGE", "broken_package")
    assert smollm2.gguf_file() == package / smollm2.GGUF
    with pytest.raises(Exception, match=r"."):
        smollm2.write_smollm2()
    assert list(smollm2.smollm2_folder().parent.iterdir()) == []
