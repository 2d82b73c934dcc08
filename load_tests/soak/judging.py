"""Whether a series of samples grows.

The samples after warm-up are cut into `BLOCKS` blocks, each with its median: neighbouring samples depend on each other (heaps grow in
steps, children come and go), blocks hardly do. The slope over requests is that of Theil and Sen: the median of the slopes between all
pairs of blocks, which a step or a spike does not move. Its confidence interval is Sen's (Estimates of the regression coefficient based on
Kendall's tau, 1968, section 5). A series grows when all of its interval is above what is `noise` for its kind: an interval that does not
hold zero is not enough, since a heap of hundreds of MiB is never quite at rest, and one that is wide is no reason to find growth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from load_tests.soak.sampling import FILES, MEMFDS, MEMORY, REDIS, SHARED, Sample

Floats = NDArray[np.float64]
BLOCKS = 24
CONFIDENCE = 0.99
THOUSAND = 1000
NOISE = {MEMORY: 0.25, SHARED: 0.05, MEMFDS: 0.05, REDIS: 0.05, FILES: 0.5}
"""For each 1,000 requests: MiB, and files. A quarter MiB in 1,000 requests is 262 bytes a request."""
NOISE_OF_COUNTS = 0.5


@dataclass(frozen=True, slots=True)
class Trend:
    """Of one series after warm-up: its `level` (the median), and by how much it grows in 1,000 requests: the slope and its interval."""

    series: str
    level: float
    slope: float
    low: float
    high: float
    noise: float

    @property
    def grows(self) -> bool:
        return self.low > self.noise


def trends(samples: Sequence[Sample], after: int) -> list[Trend]:
    """Of all series, from when so many requests had ended."""
    late = [sample for sample in samples if sample.ended >= after]
    names = sorted({name for sample in samples for name in sample.values})
    requests = np.array([sample.ended for sample in late], dtype=np.float64)
    return [_trend(name, requests, np.array([sample.values.get(name, 0.0) for sample in late])) for name in names]


def _trend(name: str, requests: Floats, values: Floats) -> Trend:
    low, slope, high = (THOUSAND * each for each in theil_sen(*blocks(requests, values)))
    return Trend(name, float(np.median(values)), slope, low, high, NOISE.get(name.partition(":")[0], NOISE_OF_COUNTS))


def blocks(x: Floats, y: Floats, count: int = BLOCKS) -> tuple[Floats, Floats]:
    """The mean of x and the median of y in each of so many parts of equal length; as many as there are, where there are fewer."""
    parts = np.array_split(np.arange(len(x)), min(count, len(x)))
    return np.array([x[part].mean() for part in parts]), np.array([np.median(y[part]) for part in parts])


def theil_sen(x: Floats, y: Floats, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """The lower end of the slope's interval, the slope, and the upper end; infinite ends where there are too few points to say anything."""
    first, second = np.triu_indices(len(x), 1)
    apart = x[first] != x[second]
    slopes = np.sort((y[second] - y[first])[apart] / (x[second] - x[first])[apart])
    if not len(slopes):
        return -math.inf, 0.0, math.inf
    count = len(x)
    spread = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    below, above = round((len(slopes) - spread) / 2), round((len(slopes) + spread) / 2)
    low = float(slopes[below]) if below >= 0 else -math.inf
    high = float(slopes[above]) if above < len(slopes) else math.inf
    return low, float(np.median(slopes)), high
