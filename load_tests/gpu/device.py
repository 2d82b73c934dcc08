"""The device that is measured, and its time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch

_WARM = 3
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU, or a processor in its place, on which the script is tried. `repeats`: how often something is timed, for a median."""

    torch_device: torch.device
    repeats: int

    @classmethod
    def found(cls, repeats: int) -> Device:
        return cls(torch.device("cuda" if torch.cuda.is_available() else "cpu"), repeats)

    @property
    def is_gpu(self) -> bool:
        return self.torch_device.type == "cuda"

    def seconds(self, work: Callable[[], object]) -> float:
        """Median time of the device for one call, launches included where they are slower than what they launch."""
        for _ in range(_WARM):
            work()
        return statistics.median(self._timed_on_gpu(work) if self.is_gpu else (self.host_seconds(work) for _ in range(self.repeats)))

    def host_seconds(self, work: Callable[[], object]) -> float:
        """Of one call, until it returns."""
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    def rehearsed(self, work: Callable[[], Found]) -> Found:
        """What the work gives when it runs alone.

        Raises:
            RuntimeError: something of it waits for the device, so that it cannot be a graph. A capture is no way to find that out: torch
                2.11 does not come out of one that fails, and the process is lost.
            Exception: what the work raises.
        """
        work()  # what is compiled and loaded at first may wait
        with self.unwaiting():
            return work()

    def captured(self, work: Callable[[], object]) -> Callable[[], object]:
        """The same work as one CUDA graph, without its launches; on a processor the work itself. Its tensors stay where they are. Raises as
        `rehearsed` does."""
        if not self.is_gpu:
            return work
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.rehearsed(work)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph.replay

    @contextmanager
    def unwaiting(self) -> Iterator[None]:
        """Whatever waits for the GPU in the block raises RuntimeError."""
        if not self.is_gpu:
            yield
            return
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")

    def wait(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize()

    def has_room(self, size_bytes: float) -> bool:
        if not self.is_gpu:
            return True
        torch.cuda.empty_cache()
        return size_bytes < torch.cuda.mem_get_info()[0]

    def _timed_on_gpu(self, work: Callable[[], object]) -> list[float]:
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2 * self.repeats)]  # type: ignore[no-untyped-call]  # torch's
        pairs = list(zip(marks[::2], marks[1::2], strict=True))
        for start, end in pairs:
            start.record()
            work()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) / 1000 for start, end in pairs]
