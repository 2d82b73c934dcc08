"""Why a backend does not serve a spec."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from grammar_service.json_text import Json


@dataclass(frozen=True, slots=True)
class Fault:
    """What a backend does not enforce exactly; `pointer` is the JSON pointer of the keyword, None outside JSON. `lasting`: where all
    faults of a schema are, no rewrite does without them."""

    pointer: str | None
    message: str
    lasting: bool = field(default=False, compare=False)


AllowList = Callable[[dict[str, Json], bool], Iterator[Fault]]
"""What a backend would not enforce exactly of a schema in normal form; the flag says that it is a rewrite, in which patterns match no
named properties and nothing is composed."""
