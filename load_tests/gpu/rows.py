"""What was measured of one size, or why it was not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

Row = Mapping[str, Any]
"""`part` says of which part it is; `failed`, `skipped`: why it has no figures."""


def tried(row: Row, measure: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    """The row with what is measured of it, or with what went wrong: the other sizes are not to be lost for one."""
    try:
        yield from ({**row, **found} for found in measure())
    except torch.OutOfMemoryError:
        yield {**row, "skipped": "no room for what lies between"}
    except Exception as error:  # noqa: BLE001  # see above
        yield {**row, "failed": said(error)}


def said(error: Exception) -> str:
    """Its name and its first line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"
