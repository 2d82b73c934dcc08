"""What a test needs and does not find: it is skipped on a laptop, and fails where somebody has said that it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.published.manifests import program
from tests.unit.k8s.crd import NAMED, definition


def test_a_missing_program_fails_in_ci_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-program is not installed"):
        program("no-such-program")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is not installed: look"):
        program("no-such-program", "look for it")


def test_missing_definitions_fail_where_their_folder_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv(NAMED, raising=False)
    with pytest.raises(pytest.skip.Exception, match=NAMED):
        definition("nosuchkinds")
    monkeypatch.setenv(NAMED, str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match=str(tmp_path)):
        definition("nosuchkinds")
