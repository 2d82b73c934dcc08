"""A whole frame on its way to the logits, as a worker applies it: nothing of it may wait for the device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from load_tests.gpu.device import Device
from load_tests.gpu.kernels import SEED, TYPES, forbidden, padded
from load_tests.gpu.plan import Plan, Row
from model_service.masks.frames.encoding import encode
from model_service.masks.frames.frame import decode
from model_service.masks.frames.logits import Staging, warm_up

PART = "apply"
KINDS = 6
LISTED = 7


def measured(plan: Plan, device: Device) -> Iterator[Row]:
    """A row for each vocabulary. `wrong`: logits that are not as they should be; `waits`: what waited for the device, None: nothing did."""
    for vocabulary in plan.vocabularies:
        count = plan.frame_logits
        with torch.inference_mode():
            yield {"part": PART, "vocabulary": vocabulary, "rows": count, **_applied(plan, device, vocabulary, count)}


def masks(count: int, vocabulary: int) -> npt.NDArray[np.int32]:
    """int32 [count, ceil(V/32)], one after another: anything, a forced token, few allowed ones, few forbidden ones, half of all,
    and nearly the same half."""
    chance, bits = np.random.default_rng(SEED), np.zeros((count, -(-vocabulary // 32) * 32), dtype=np.uint8)
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


def _applied(plan: Plan, device: Device, vocabulary: int, count: int) -> Row:
    bits = masks(count, vocabulary)
    data, places, staging = encode(bits, vocabulary), np.arange(count)[::-1].copy(), Staging(count)
    logits = padded(count, vocabulary, TYPES["bf16"], device.torch_device)
    expected = logits.clone().masked_fill_(forbidden(torch.from_numpy(bits[::-1].copy()).to(logits.device), vocabulary), -torch.inf)
    warm_up(padded(1, vocabulary, TYPES["bf16"], device.torch_device), staging)

    def step() -> None:
        decode(data).arranged(places).apply(logits, staging)

    step()
    wrong = int((logits != expected).sum())
    hosts, waits = [], None
    try:
        with device.unwaiting():
            hosts = [device.host_seconds(step) for _ in range(plan.steps)]
    except RuntimeError as error:
        waits = str(error).splitlines()[0]
    device.wait()
    host_us = float(np.median(hosts)) * 1e6 if hosts else None
    return {"wrong": wrong, "waits": waits, "frame_bytes": len(data), "host_us": host_us, "step_us": device.seconds(step) * 1e6}
