"""Why a backend does not serve a spec."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """What a backend does not enforce exactly; `pointer` is the JSON pointer of the keyword, None outside JSON."""

    pointer: str | None
    message: str
