"""What goes wrong in a part is its result, and nobody else's."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from functools import partial

import torch

from load_tests.gpu import apart
from load_tests.gpu.device import Device
from load_tests.gpu.plan import SMALL, Plan
from load_tests.gpu.rows import Row, tried

FIRST: Row = {"part": "tried", "requests": 1}


def lost(_plan: Plan, _device: Device) -> Iterator[Row]:
    yield FIRST
    os.kill(os.getpid(), signal.SIGKILL)


def broken(_plan: Plan, _device: Device) -> Iterator[Row]:
    yield FIRST
    raise RuntimeError("captures underway [/x]\nand more")


def silent(_plan: Plan, _device: Device) -> Iterator[Row]:
    signal.pause()
    yield FIRST


def endless(_plan: Plan, _device: Device) -> Iterator[Row]:
    while True:
        yield FIRST


def test_a_process_that_dies_leaves_what_it_has_measured() -> None:
    assert list(apart.measured("tried", lost, SMALL, 60)) == [FIRST, {"part": "tried", "failed": "its process ended with status -9"}]


def test_an_error_is_the_last_row() -> None:
    assert list(apart.measured("tried", broken, SMALL, 60)) == [FIRST, {"part": "tried", "failed": "RuntimeError: captures underway [/x]"}]


def test_who_says_nothing_is_ended() -> None:
    rows = list(apart.measured("tried", silent, SMALL, 60, silent_s=0.5))
    assert rows == [{"part": "tried", "failed": "its process said nothing for 0.5 s"}]
    assert not multiprocessing.active_children()


def test_the_time_of_a_part_ends() -> None:
    *rows, last = apart.measured("tried", endless, SMALL, 0.5)
    assert last == {"part": "tried", "skipped": apart.NO_TIME}
    assert all(row == FIRST for row in rows)


def test_one_bad_size_leaves_the_others() -> None:
    def measure(size: int) -> Iterator[Row]:
        if size == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        if size == 3:
            raise ValueError("[/x]")
        yield {"ms": size}

    found = [row for size in (1, 2, 3, 4) for row in tried({"size": size}, partial(measure, size))]
    assert found == [
        {"size": 1, "ms": 1},
        {"size": 2, "skipped": "no room for what lies between"},
        {"size": 3, "failed": "ValueError: [/x]"},
        {"size": 4, "ms": 4},
    ]
