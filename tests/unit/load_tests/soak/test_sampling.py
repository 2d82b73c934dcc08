"""What is looked at is really there: a process of ours with open files and shared memory, and what is left of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from load_tests.faults.waiting import wait_for
from load_tests.soak.judging import trends
from load_tests.soak.picture import draw
from load_tests.soak.recorded import read, written
from load_tests.soak.roles import OTHER, role
from load_tests.soak.sampling import FILES, KEYS, MEMFDS, MEMORY, OBJECTS, REDIS, SHARED, ZOMBIES, Looker, Sample, Sampling
from load_tests.soak.shared_memory import memfds_of

FILES_OPEN = 20
CHILD = f"""
import mmap, os, sys
shared, other = os.memfd_create("rings"), os.memfd_create("figures")
os.write(shared, bytes(1 << 20))
os.posix_fallocate(other, 0, 1 << 20)
mapped = mmap.mmap(other, 1 << 20)
os.close(other)
with open("/dev/shm/maskcast-" + str(os.getpid()), "w+b", buffering=0) as segment:
    os.unlink(segment.name)
    segment.write(bytes(1 << 20))
    files = [open("/dev/null") for _ in range({FILES_OPEN})]
    print(flush=True)
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
def child() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_process_is_seen_and_that_it_has_ended(looker: Looker, child: subprocess.Popen[str]) -> None:
    seen = looker.look()
    assert seen[f"{FILES}: {OTHER}"] >= FILES_OPEN + 3
    assert seen[f"{MEMORY}: {OTHER}"] > 5
    assert (seen[KEYS], seen[REDIS], seen[OBJECTS]) == (7, 3, 5)
    child.kill()
    wait_for(lambda: looker.look()[ZOMBIES] == seen[ZOMBIES] + 1, 10, "the zombie")


def test_shared_memory_without_a_name_is_seen(looker: Looker, child: subprocess.Popen[str]) -> None:
    """Segments were looked for by name: there was never one, since ours have none, and Ray's store unlinks its own."""
    seen = looker.look()
    assert seen[SHARED] >= 1
    assert memfds_of(child.pid) == dict.fromkeys(memfds_of(child.pid), 1 << 20)
    assert len(memfds_of(child.pid)) == 2, "one is open, the other is only mapped"
    assert seen[MEMFDS] >= 2
    child.kill()
    child.wait()
    assert memfds_of(child.pid) == {}


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("/python/ray/core/src/ray/raylet/raylet --python_worker_command=python /ray/_private/workers/default_worker.py --x", "raylet"),
        ("python /ray/_private/workers/default_worker.py --raylet-name=/tmp/ray/session/sockets/raylet", "idle worker"),
        ("ray::ServeReplica:maskcast:ModelReplica", "ModelReplica"),
        ("python -c from multiprocessing.forkserver import main; main(71, 72, ['vllm.v1.engine.core'])", "what cores are forked from"),
        ("python -u /ray/dashboard/agent.py --raylet-name=/tmp/ray/session/sockets/raylet", "Ray's agents"),
    ],
)
def test_a_process_is_known_by_its_command_line(command: str, named: str) -> None:
    assert role(command) == named


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
    names = (f"{MEMORY}: ingress", f"{FILES}: ingress", f"{FILES}: raylet", SHARED, MEMFDS, KEYS, REDIS, OBJECTS, ZOMBIES)
    samples = [Sample(float(at), 100 * at, dict.fromkeys(names, float(at % 3))) for at in range(30)]
    draw(samples, trends(samples, 1000), 1000, tmp_path / "deep" / "soak.png")
    assert (tmp_path / "deep" / "soak.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_sampled_can_be_judged_anew() -> None:
    samples = [Sample(9.0 * at, 97 * at, {SHARED: 200 + at / 3, **({ZOMBIES: 1.0} if at > 7 else {})}) for at in range(100)]
    recorded = read([{"series": "of another kind"}, *written(samples)])
    assert [(sample.at_s, sample.ended) for sample in recorded] == [(sample.at_s, sample.ended) for sample in samples]
    for first, second in zip(trends(samples, 4000), trends(recorded, 4000), strict=True):
        assert (first.series, first.grows) == (second.series, second.grows)
        assert second.slope == pytest.approx(first.slope, rel=1e-3)
