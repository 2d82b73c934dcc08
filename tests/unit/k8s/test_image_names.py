"""Images are named by version, never `latest`, and by digest where an operator does what the guide says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.published.manifests import K8S, OVERLAYS, ROOT, built, program

VERSION = re.compile(r"[\w./-]+:\d+(\.\d+)+[\w.-]*")
DIGEST = re.compile(r"[\w./-]+(:[\w.-]+)?@sha256:[0-9a-f]{64}")
GUIDE = (ROOT / "docs" / "guide" / "operations.md").read_text(encoding="utf-8")
RECIPE = (K8S / "image" / "Dockerfile").read_text(encoding="utf-8")


def images(manifests: str) -> list[str]:
    return re.findall(r"^\s*-?\s*image: (\S+)$", manifests, re.MULTILINE)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_manifests_name_versions(overlay: str) -> None:
    named = images(yaml.safe_dump_all(built(overlay)))
    assert len(set(named)) == 2  # ours and Redis's
    assert not [each for each in named if not VERSION.fullmatch(each)]


def test_all_stages_of_the_image_have_one_base_which_can_be_named_by_digest() -> None:
    (base,) = re.findall(r"^ARG BASE=(\S+)$", RECIPE, re.MULTILINE)
    assert VERSION.fullmatch(base)
    assert set(re.findall(r"^FROM (\S+)", RECIPE, re.MULTILINE)) == {"${BASE}"}
    assert f"BASE={base}@sha256:" in GUIDE


def test_what_the_guide_adds_to_an_overlay_names_all_images_by_digest(tmp_path: Path) -> None:
    (added,) = re.findall(r"^```text\n(images:\n.*?)```$", GUIDE, re.DOTALL | re.MULTILINE)
    shutil.copytree(K8S, tmp_path / "k8s")
    overlay = tmp_path / "k8s" / "overlays" / "high-availability"
    with (overlay / "kustomization.yaml").open("a", encoding="utf-8") as file:
        file.write(added.replace("…", "0" * 64))
    done = subprocess.run([program("kubectl"), "kustomize", str(overlay)], capture_output=True, text=True, check=True)
    named = images(done.stdout)
    assert len(set(named)) == 2
    assert not [each for each in named if not DIGEST.fullmatch(each)]
