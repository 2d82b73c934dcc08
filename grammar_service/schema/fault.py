"""Why a backend does not serve a spec."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from grammar_service.schema.algebra.inexact import Reason
from grammar_service.schema.json_text import Json


@dataclass(frozen=True, slots=True)
class Fault:
    """What a backend does not enforce exactly; `pointer` is the JSON pointer of the keyword, None outside JSON. `lasting`: where all
    faults of a schema are, no rewrite does without them. `because`: why there is no rewrite that does."""

    pointer: str | None
    message: str
    lasting: bool = field(default=False, compare=False)
    because: Reason | None = None

    @property
    def text(self) -> str:
        """The message with its reason."""
        if self.because is None or self.because.message == self.message:
            return self.message
        place = self.because.pointer or ""
        elsewhere = "" if f"{self.pointer or ''}/".startswith(f"{place}/") else f" ({place})"
        return f"{self.message}: {self.because.message}{elsewhere}"

    def below(self, pointer: str) -> Fault:
        """The same fault of a schema that stands at `pointer` of something larger."""
        return replace(self, pointer=self.pointer or "").at(lambda inner: pointer + inner)

    def at(self, place: Callable[[str], str]) -> Fault:
        """The same fault with what `place` makes of its pointers."""
        because = self.because
        if because is not None and because.pointer is not None:
            because = replace(because, pointer=place(because.pointer))
        return replace(self, pointer=None if self.pointer is None else place(self.pointer), because=because)


AllowList = Callable[[dict[str, Json], bool], Iterator[Fault]]
"""What a backend would not enforce exactly of a schema in normal form; the flag says that it is a rewrite, in which patterns match no
named properties and nothing is composed."""


def explained(faults: list[Fault], reason: Reason) -> list[Fault]:
    """The faults of a schema that has no rewrite, with the reason at the one whose keyword it is about: the one nearest to its place
    and, of several, one that it names."""
    if not faults:
        return faults
    about = max(range(len(faults)), key=lambda index: _nearness(faults[index], reason))
    return [replace(fault, because=reason) if index == about else fault for index, fault in enumerate(faults)]


def _nearness(fault: Fault, reason: Reason) -> tuple[int, bool]:
    keyword = (fault.pointer or "").rpartition("/")[2]
    return _common_steps(fault.pointer or "", reason.pointer or ""), f"`{keyword}`" in reason.message


def _common_steps(left: str, right: str) -> int:
    steps = 0
    for mine, theirs in zip(left.split("/"), right.split("/"), strict=False):
        if mine != theirs:
            break
        steps += 1
    return steps
