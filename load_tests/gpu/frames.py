"""A whole frame on its way to the logits, as a worker applies it: nothing of it may wait for the device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import cycle, islice

import numpy as np
import numpy.typing as npt
import torch

from load_tests.gpu.device import Device
from load_tests.gpu.kernels import SEED, TYPES, forbidden, padded
from load_tests.gpu.plan import Plan
from load_tests.gpu.rows import Row, said, tried
from model_service.masks.frames.encoding import encode
from model_service.masks.frames.frame import decode
from model_service.masks.frames.logits import Staging, warm_up

PART = "apply"
KINDS = 6
LISTED = 7


def measured(plan: Plan, device: Device) -> Iterator[Row]:
    """A row for each vocabulary. `wrong`: logits of all steps that are not as they should be; `waits`: what waited for the device, None:
    nothing did. Two frames take turns: a step that has the other one's bytes is seen."""
    for vocabulary in plan.vocabularies:
        row = {"part": PART, "vocabulary": vocabulary, "rows": plan.frame_logits}
        yield from tried(row, partial(_applied, plan, device, vocabulary, plan.frame_logits))


def masks(count: int, vocabulary: int, seed: int = SEED) -> npt.NDArray[np.int32]:
    """int32 [count, ceil(V/32)], one after another: anything, a forced token, few allowed ones, few forbidden ones, half of all,
    and nearly the same half."""
    chance, bits = np.random.default_rng(seed), np.zeros((count, -(-vocabulary // 32) * 32), dtype=np.uint8)
    for number, row in enumerate(bits):
        listed = chance.integers(0, vocabulary, LISTED)
        match number % KINDS:
            case 0:
                row[:vocabulary] = 1
            case 1:
                row[listed[0]] = 1
            case 2:
                row[listed] = 1
            case 3:
                row[:vocabulary] = 1
                row[listed] = 0
            case 4:
                row[:vocabulary] = chance.integers(0, 2, vocabulary)
            case _:
                row[:] = bits[number - 1]
                row[listed] ^= 1
    return np.packbits(bits, axis=1, bitorder="little").view(np.int32)


class _Masking:
    """A frame whose bytes are there, and the logits that it leaves of `random` ones."""

    def __init__(self, random: torch.Tensor, seed: int) -> None:
        count, vocabulary = random.shape
        bits = masks(count, vocabulary, seed)
        self.data, self._places = encode(bits, vocabulary), np.arange(count)[::-1].copy()
        there = torch.from_numpy(bits[::-1].copy()).to(random.device)
        self.expected = random.masked_fill(forbidden(there, vocabulary), -torch.inf)

    def apply(self, logits: torch.Tensor, staging: Staging) -> None:
        decode(self.data).arranged(self._places).apply(logits, staging)


def _applied(plan: Plan, device: Device, vocabulary: int, count: int) -> Iterator[Row]:
    with torch.inference_mode():
        random, logits = (padded(count, vocabulary, TYPES["bf16"], device.torch_device) for _ in range(2))
        frames, staging = [_Masking(random, SEED + number) for number in range(2)], Staging(count)
        warm_up(padded(1, vocabulary, TYPES["bf16"], device.torch_device), staging)
        frames[0].apply(logits, staging)
        hosts, waits, wrong = [], None, torch.zeros((), dtype=torch.int64, device=device.torch_device)
        try:
            with device.unwaiting():
                for frame in islice(cycle(frames), plan.steps):
                    logits.copy_(random)
                    hosts.append(device.host_seconds(partial(frame.apply, logits, staging)))
                    wrong += (logits != frame.expected).sum()
        except RuntimeError as error:
            waits = said(error)
        device.wait()
        step_us = device.seconds(partial(frames[0].apply, logits, staging)) * 1e6
        host_us = float(np.median(hosts)) * 1e6 if hosts else None
        yield {"wrong": int(wrong), "waits": waits, "frame_bytes": len(frames[0].data), "host_us": host_us, "step_us": step_us}
