"""Every pin of both locks has the hashes of the files that pip may install for it, and `scripts/lock_hashes` writes them."""

from __future__ import annotations

import re

import pytest

from tests.published.locks import requirements
from tests.published.manifests import ROOT
from tests.published.scripts import script

LOCKS = ("requirements.lock", "requirements-gpu.lock")
TEXTS = {lock: (ROOT / lock).read_text(encoding="utf-8") for lock in LOCKS}
RENEW = script("lock_hashes")
A, B = "a" * 64, "b" * 64
LOCK = '# why\n\n# runtime\nOne==1.0\ntwo_2==2.0; python_full_version < "3.11.3"\n'
HASHED = f"""\
# why

# runtime
One==1.0 \\
    --hash=sha256:{A} \\
    --hash=sha256:{B}
two_2==2.0; python_full_version < "3.11.3" \\
    --hash=sha256:{B}
"""


def hashes(lock: str) -> dict[str, list[str]]:
    return {pin.name: RENEW.hashes_of(TEXTS[lock], pin.name) for pin in requirements(TEXTS[lock])}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_the_hashes_of_its_files_each_once_and_sorted(lock: str) -> None:
    known = hashes(lock)
    assert known
    assert not [name for name, found in known.items() if not found or found != sorted(set(found))]
    assert sum(map(len, known.values())) == TEXTS[lock].count("--hash=")


def test_a_package_of_both_locks_is_the_same_files_but_for_torch() -> None:
    cpu, gpu = ({pin.name: str(pin.specifier) for pin in requirements(TEXTS[lock])} for lock in LOCKS)
    known, others = map(hashes, LOCKS)
    assert {name for name in cpu.keys() & gpu.keys() if cpu[name] == gpu[name] and known[name] != others[name]} == {"torch"}
    assert not set(known["torch"]) & set(others["torch"])


def test_hashes_are_written_as_pip_reads_them_and_taken_out_again() -> None:
    assert RENEW.hashed(LOCK, {"one": [B, A], "two-2": [B]}) == HASHED
    assert RENEW.plain(HASHED) == LOCK
    assert RENEW.hashes_of(HASHED, "One") == [A, B]
    assert [pin.name for pin in requirements(HASHED)] == ["One", "two_2"]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_is_as_it_would_be_written(lock: str) -> None:
    known = {RENEW.canonicalize_name(name): found for name, found in hashes(lock).items()}
    assert RENEW.hashed(RENEW.plain(TEXTS[lock]), known) == TEXTS[lock]


@pytest.mark.parametrize(
    ("machine", "is_taken"),
    [
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("py2-none-any", False),
        ("py312-none-any", True),
        ("py313-none-any", False),
        ("cp311-cp311-manylinux_2_28_x86_64", True),
        ("cp312-cp312-manylinux2014_aarch64.manylinux_2_17_aarch64", True),
        ("cp312-none-linux_x86_64", True),
        ("cp38-abi3-manylinux2014_x86_64", True),
        ("cp313-abi3-manylinux2014_x86_64", False),
        ("cp310-cp310-manylinux_2_28_x86_64", False),
        ("cp313-cp313t-manylinux_2_28_x86_64", False),
        ("pp311-pypy311_pp73-manylinux_2_28_x86_64", False),
        ("cp311-cp311-musllinux_1_2_x86_64", False),
        ("cp311-cp311-manylinux_2_28_s390x", False),
        ("cp311-cp311-macosx_14_0_arm64", False),
        ("py3-none-win_amd64", False),
    ],
)
def test_wheels_are_taken_for_the_machines_that_are_supported(machine: str, is_taken: bool) -> None:
    assert RENEW.fits(f"torch-2.13.0+cpu-{machine}.whl") == is_taken


def test_source_distributions_are_not_taken_and_a_pin_without_a_wheel_is_an_error() -> None:
    wheel = {"url": f"https://index/{A}/one-1.0%2Bcpu-py3-none-any.whl", "hashes": {"sha256": A}}
    source = {"url": "https://index/one-1.0.tar.gz", "hashes": {"sha256": B}}
    assert RENEW.hashes([{"name": "one", "wheels": [wheel], "sdist": source}]) == {"one": [A]}
    with pytest.raises(SystemExit, match="two"):
        RENEW.hashes([{"name": "one", "wheels": [wheel]}, {"name": "two", "sdist": source}])


def test_set_up_and_image_install_only_what_has_a_hash_in_the_lock() -> None:
    for recipe in ("scripts/setup", "k8s/image/Dockerfile"):
        text = (ROOT / recipe).read_text(encoding="utf-8")
        commands = re.findall(r"pip(?:_| )install (.+)$", text, re.MULTILINE)
        locks = [each for each in commands if "-r " in each]
        assert locks, recipe
        assert all("--require-hashes --only-binary :all:" in each for each in locks), recipe
        project = [each for each in commands if each not in locks and "--no-build-isolation" in each]
        assert len(project) == 1, recipe
