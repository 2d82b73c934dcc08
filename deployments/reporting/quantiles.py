"""Quantiles of measurements, defined for any number of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def quantile(values: Iterable[float], share: float) -> float | None:
    """Linear interpolation between the nearest ranks; `share` from 0 to 1; None of nothing."""
    measured = list(values)
    return float(np.quantile(measured, share)) if measured else None


def median(values: Iterable[float]) -> float | None:
    return quantile(values, 0.5)


def ratio(part: float | None, whole: float | None) -> float | None:
    """None where either is missing or the whole is 0."""
    return part / whole if part is not None and whole else None
