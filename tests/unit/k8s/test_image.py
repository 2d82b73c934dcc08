"""The recipe of the image, as far as it can be judged without building it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import torch

from tests.published.manifests import K8S, OVERLAYS, ROOT, groups, program

RECIPE = K8S / "image" / "Dockerfile"
TEXT = RECIPE.read_text(encoding="utf-8")
LOCKS = re.findall(r"--build-arg LOCK=(\S+)", TEXT)
PACKAGES = Path(torch.__file__).parents[1]
BASE = re.compile(r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s|cuda)\.so\.\d+|ld-linux-.+")
"""What Python's image of Debian has (libc6, libstdc++6, libgcc-s1), and the driver, which a GPU's pod is given."""
OF_DEBIAN = {"libnuma.so.1": "libnuma1"}
"""Its packages for other libraries, by what programs ask for."""


def test_it_keeps_to_the_rules_of_hadolint() -> None:
    done = subprocess.run([program("hadolint"), str(RECIPE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_it_copies_is_there() -> None:
    copied = [path for line in re.findall(r"^COPY (?!--from)(.+) \S+$", TEXT, re.M) for path in line.split()]
    assert "deployments" in copied
    for path in copied:
        for lock in LOCKS:
            assert (ROOT / path.replace("${LOCK}", lock)).exists(), path


@pytest.mark.parametrize("lock", LOCKS)
def test_it_takes_the_packages_of_the_lock_that_run(lock: str) -> None:
    runtime = (ROOT / lock).read_text().split("# development")[0]
    assert "/^# development/" in TEXT
    assert {"ray", "torch", "redis"} <= {line.split("==")[0] for line in runtime.splitlines()}
    assert "pytest==" not in runtime


def test_vllm_finds_the_libraries_that_no_wheel_has() -> None:
    """In the image, and on a machine that `scripts/setup` has prepared."""
    readelf = program("readelf", "it is in binutils, which comes with g++")
    built = [str(file) for file in (PACKAGES / "vllm").rglob("*.so*")]
    said = subprocess.run([readelf, "-d", *built], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", said))
    assert "libtorch.so" in needed
    in_wheels = {file.name for folder in ("torch", "nvidia", "vllm") for file in (PACKAGES / folder).rglob("*.so*")}
    others = {name for name in needed - in_wheels if not BASE.fullmatch(name)}
    assert others <= OF_DEBIAN.keys()
    (installed,) = re.findall(r"apt-get install -y --no-install-recommends (.+?) \\", TEXT)
    prepared = dict(re.findall(r"need_library (lib\S+) (\S+)", (ROOT / "scripts" / "setup").read_text()))
    assert {OF_DEBIAN[name] for name in others} <= {*installed.split()}
    assert {name: OF_DEBIAN[name] for name in others}.items() <= prepared.items()


def test_its_user_is_the_one_of_the_pods() -> None:
    (user,) = re.findall(r"^USER (\d+):(\d+)$", TEXT, re.M)
    for overlay in OVERLAYS:
        for group in groups(overlay):
            context = group["template"]["spec"]["securityContext"]
            assert (str(context["runAsUser"]), str(context["runAsGroup"])) == user
