"""Forced tokens into a table of tokens on the device, as vLLM's second model runner keeps one: what a step forces is gathered on the host,
goes there in one copy, and is scattered. vLLM's own buffers and kernels are not there; that such an order of copies and reads does not
wait, nor overtake itself, can be seen without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt
import torch

from load_tests.gpu.device import Device
from load_tests.gpu.plan import Plan
from load_tests.gpu.rows import Row, said, tried

PART = "staged writes"
Write = tuple[int, int, npt.NDArray[np.int32]]
"""A request's row, the place of the first token, and the tokens."""


class TokenTable:
    """int32 [rows, places], on the device. `depth`: how many steps are under way at most, each with staging memory of its own."""

    def __init__(self, rows: int, places: int, most: int, device: Device, depth: int = 2) -> None:
        self._places = places
        self.there = torch.zeros(rows, places, dtype=torch.int32, device=device.torch_device)
        self._staged = [torch.empty(2 * most, dtype=torch.int64, pin_memory=device.is_gpu) for _ in range(depth)]
        self._free = [torch.cuda.Event() for _ in range(depth)] if device.is_gpu else []  # type: ignore[no-untyped-call]  # torch's
        self._turn = 0

    def write(self, writes: Sequence[Write]) -> None:
        """All of a step."""
        self._turn = (self._turn + 1) % len(self._staged)
        if self._free:
            self._free[self._turn].synchronize()  # of the step that had it before
        total = sum(len(tokens) for _, _, tokens in writes)
        staged = self._staged[self._turn][: 2 * total].view(2, total)  # in one piece, or the copy would wait
        flat, contents = staged.numpy()
        np.concatenate([row * self._places + start + np.arange(len(tokens)) for row, start, tokens in writes], out=flat)
        np.concatenate([tokens for _, _, tokens in writes], out=contents, casting="same_kind")
        sent = staged.to(self.there.device, non_blocking=True)
        self.there.view(-1).scatter_(0, sent[0], sent[1].to(torch.int32))
        if self._free:
            self._free[self._turn].record()


def measured(plan: Plan, device: Device) -> Iterator[Row]:
    """A row for each number of requests and each segment. `wrong`: tokens of the table, or of what a step read of it, that are not those
    that were written."""
    for requests, segment in product(plan.requests, plan.segments):
        row = {"part": PART, "requests": requests, "segment": segment}
        yield from tried(row, partial(_written, plan, device, requests, segment))


def _written(plan: Plan, device: Device, requests: int, segment: int) -> Iterator[Row]:
    places = 2 * segment * plan.steps
    table, expected = TokenTable(requests, places, requests * segment, device), np.zeros((requests, places), dtype=np.int32)
    chance, hosts, waits, wrong = np.random.default_rng(5), [], None, torch.zeros((), dtype=torch.int64, device=device.torch_device)
    rows = torch.arange(requests, device=device.torch_device).unsqueeze(1)
    steps = [chance.integers(1, 1 << 17, (requests, segment), dtype=np.int32) for _ in range(plan.steps)]
    there = [torch.from_numpy(tokens).to(device.torch_device) for tokens in steps]
    ahead = torch.arange(segment, device=device.torch_device)
    try:
        with device.unwaiting():
            for number, tokens in enumerate(steps):
                start = 2 * segment * number
                writes = [(row, start, tokens[row]) for row in range(requests)]
                hosts.append(device.host_seconds(partial(table.write, writes)))
                wrong += (table.there[rows, start + ahead] != there[number]).sum()
                expected[:, start : start + segment] = tokens
    except RuntimeError as error:
        waits = said(error)
    device.wait()
    lost = int((table.there.cpu().numpy() != expected).sum())
    yield {"wrong": int(wrong) + lost, "waits": waits, "host_us": float(np.median(hosts)) * 1e6 if hosts else None}
