"""What is looked at is really there: a process of ours with open files and shared memory, and what is left of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest

from load_tests.faults.waiting import wait_for
from load_tests.soak.judging import trends
from load_tests.soak.picture import draw
from load_tests.soak.roles import OTHER
from load_tests.soak.sampling import FILES, KEYS, MEMORY, OBJECTS, REDIS, SHARED, ZOMBIES, Looker, Sample, Sampling

FILES_OPEN = 20
CHILD = f"""
import sys
from multiprocessing.shared_memory import SharedMemory
shared = SharedMemory(create=True, size=1 << 20, track=False) if sys.version_info >= (3, 13) else SharedMemory(create=True, size=1 << 20)
shared.buf[:] = bytes(1 << 20)
files = [open("/dev/null") for _ in range({FILES_OPEN})]
print(shared.name, flush=True)
sys.stdin.read()
"""


class Store:
    """Says what a Redis says of itself."""

    def info(self, section: str) -> dict[str, int]:
        return {"used_memory": 3 << 20} if section == "memory" else {}

    def dbsize(self) -> int:
        return 7


@pytest.fixture
def looker() -> Looker:
    return Looker(Store(), lambda: 5)


@pytest.fixture
def child() -> Iterator[tuple[subprocess.Popen[str], str]]:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        yield process, name
        process.kill()
    if Path("/dev/shm", name).exists():
        segment = SharedMemory(name)
        segment.close()
        segment.unlink()


def test_a_process_is_seen_and_what_it_leaves_behind(looker: Looker, child: tuple[subprocess.Popen[str], str]) -> None:
    process, name = child
    seen = looker.look()
    assert seen[f"{FILES}: {OTHER}"] >= FILES_OPEN + 3
    assert seen[f"{MEMORY}: {OTHER}"] > 5
    assert (seen[KEYS], seen[REDIS], seen[OBJECTS]) == (7, 3, 5)
    shared = seen[SHARED]
    assert shared >= 1
    process.kill()
    wait_for(lambda: looker.look()[ZOMBIES] == seen[ZOMBIES] + 1, 10, "the zombie")
    if Path("/dev/shm", name).exists():  # its tracker may have removed it already
        assert looker.look()[SHARED] >= 1


def test_samples_are_taken_until_the_end_and_say_how_many_had_ended() -> None:
    ended = iter(range(1000))
    with Sampling(lambda: {ZOMBIES: 0.0}, lambda: next(ended), 0.01) as samples:
        wait_for(lambda: len(samples) > 2, 10, "samples")
    assert [sample.ended for sample in samples] == list(range(len(samples)))


def test_what_goes_wrong_while_looking_is_raised_in_the_end() -> None:
    def look() -> dict[str, float]:
        raise ConnectionError("Redis has gone")

    with pytest.raises(ConnectionError), Sampling(look, int, 0.01):
        pass


def test_everything_is_drawn(tmp_path: Path) -> None:
    names = (f"{MEMORY}: ingress", f"{FILES}: ingress", f"{FILES}: raylet", SHARED, KEYS, REDIS, OBJECTS, ZOMBIES)
    samples = [Sample(float(at), 100 * at, dict.fromkeys(names, float(at % 3))) for at in range(30)]
    draw(samples, trends(samples, 1000), 1000, tmp_path / "deep" / "soak.png")
    assert (tmp_path / "deep" / "soak.png").read_bytes().startswith(b"\x89PNG")
