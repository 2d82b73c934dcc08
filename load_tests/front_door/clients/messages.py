"""Between the benchmark and its client process; pickled by multiprocessing, between processes of one command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


@dataclass(frozen=True, slots=True)
class Course:
    """`clients` clients at a time send the bodies one after another, round and round: until each has been answered once, and then for
    `seconds` that count. Without `seconds` each body is sent once, and all of that time counts. `stream`: whether the bodies ask for event
    streams; `key`: the API key they send, if any. `joins`: the environment by which a process joins the service's Ray, where it is asked by
    handle instead of HTTP; `path`: where HTTP asks."""

    host: str
    port: int
    bodies: Sequence[bytes]
    clients: int
    stream: bool
    seconds: float | None
    key: str = ""
    joins: Mapping[str, str] = field(default_factory=dict)
    path: str = CHAT


@dataclass(frozen=True, slots=True)
class PieceCourse:
    """`clients` clients stream the answer to `body` again and again: pieces that come within `seconds`, after the first `ramp_s`, count."""

    host: str
    port: int
    body: bytes
    clients: int
    ramp_s: float
    seconds: float
    key: str = ""


@dataclass(frozen=True, slots=True)
class WindowBegan:
    """All clients are at work: what is measured begins."""


@dataclass(frozen=True, slots=True)
class WindowEnded:
    """What is measured is over; `client_s` is the processor time of the client process meanwhile."""

    seconds: float
    client_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` is the number of the question's body; seconds from its sending. `first_s`: until the first text of a stream; None: there was
    none, or it was a whole answer. `pieces`: of text. `finish`: why the answer ended, as the server says. `status` 0: no answer. `share`:
    of its time that lies within the window; `ended`: whether its end does."""

    body: int
    status: int
    text: str
    finish: str
    pieces: int
    first_s: float | None
    latency_s: float
    share: float = 1.0
    ended: bool = True


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers that were on their way within the window, or all where there was none."""

    answers: Sequence[Answer]


@dataclass(frozen=True, slots=True)
class PiecesCame:
    """Within the window, all clients together: pieces of text and their characters. `failed`: answers that had another status than 200,
    ended in an error or before their end, and clients that nobody answered any more. `gap_p99_s`: between two pieces of one client."""

    pieces: int
    characters: int
    failed: int
    gap_p99_s: float | None


Report = WindowBegan | WindowEnded | Answered | PiecesCame
