"""The recipe of the image, as far as it can be judged without building it."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.published.manifests import K8S, OVERLAYS, ROOT, groups, program

RECIPE = K8S / "image" / "Dockerfile"
TEXT = RECIPE.read_text(encoding="utf-8")
LOCKS = re.findall(r"--build-arg LOCK=(\S+)", TEXT)


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


def test_its_user_is_the_one_of_the_pods() -> None:
    (user,) = re.findall(r"^USER (\d+):(\d+)$", TEXT, re.M)
    for overlay in OVERLAYS:
        for group in groups(overlay):
            context = group["template"]["spec"]["securityContext"]
            assert (str(context["runAsUser"]), str(context["runAsGroup"])) == user
