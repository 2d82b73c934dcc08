"""Clients that ask for one long answer after the other, and what became of each."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from itertools import count
from statistics import median
from typing import Any, Protocol

import psutil

from load_tests.errors import BenchFailed
from load_tests.faults.ray_nodes import HERE
from load_tests.faults.waiting import wait_for

WHOLE, FAILED, CUT, UNANSWERED, HUNG, STRUCK, REFUSED = "whole", "failed", "cut", "unanswered", "hung", "struck", "refused"
"""Ended as it should; with an error of the service's own; in the middle; before its head; not at all; its connection ended with the ingress
that held it; nobody took the connection."""
LOST = (CUT, UNANSWERED, HUNG)
PATIENCE_S = 90.0
MOST_LETTERS, ANSWER_S = 300, 4.0
"""Of an answer: letters, at least, and how long it takes where nothing is struck: 300 take about as long where processors have AVX-512."""
SPAN = 200
GRAMMARS = 101
TAKEN_S, TICK_S, AGAIN_S = 2.0, 0.02, 0.5
LAST = 200
ENDS_S = 2.0
"""For a process whose connections have ended to be gone."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A request of this client, `how` it ended, and the last of what was `said`, or what went wrong; times are of a clock that does not run
    backwards."""

    client: int
    sent_at: float
    ended_at: float
    how: str
    said: str = ""


class Served(Protocol):
    """Where clients ask, and what they say of themselves."""

    @property
    def port(self) -> int: ...

    @property
    def headers(self) -> dict[str, str]: ...


class Clients:
    """From their first requests on until the end of the block; `streaming` ones and `plain` ones. An answer has as many `letters`, at
    least. With a `door`, all go through that ingress, for as long as it takes them; when its process has ended, through any."""

    def __init__(
        self,
        served: Served,
        streaming: int,
        plain: int = 0,
        letters: int = 800,
        door: psutil.Process | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.ended: list[Ended] = []
        self.open: set[int] = set()
        """The clients' ports of the requests that are under way."""
        self._served = served
        self._letters = letters
        self._door = door
        self._patience_s = patience_s
        self._over = threading.Event()
        self._numbers = count()
        self._threads = [threading.Thread(target=self._go_on, args=(number, number < streaming)) for number in range(streaming + plain)]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        try:
            wait_for(lambda: len(self.open) == len(self._threads), 60, "all clients to ask")
        except BenchFailed:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    @property
    def ends(self) -> Counter[str]:
        return Counter(each.how for each in list(self.ended))

    def back_s(self, since: float) -> float | None:
        """How long after `since` the last client had a whole answer to what it asked for after it; None: not all have."""
        first: dict[int, float] = {}
        for each in list(self.ended):
            if each.how == WHOLE and each.sent_at >= since:
                first.setdefault(each.client, each.ended_at)
        return max(first.values()) - since if len(first) == len(self._threads) else None

    def _go_on(self, client: int, stream: bool) -> None:
        while not self._over.is_set():
            sent_at, how, said = time.monotonic(), "", ""
            connection, door = HTTPConnection(HERE, self._served.port, timeout=self._patience_s), self._door
            if door is not None and not (is_up(door) and is_listening(door, self._served.port)):
                door = None  # it has ended, or drains
            try:
                connection.connect()
                if door is None or self._is_at(door, _port(connection)):
                    how, said = self._end(connection, stream)
            except ConnectionRefusedError as error:
                how, said = REFUSED, repr(error)
                self._over.wait(AGAIN_S)
            except OSError as error:
                how, said = UNANSWERED, repr(error)
            finally:
                connection.close()
            if how in (CUT, UNANSWERED) and door is not None and ends(door):
                how = STRUCK
            if how:
                self.ended.append(Ended(client, sent_at, time.monotonic(), how, said))

    def _is_at(self, door: psutil.Process, port: int) -> bool:
        """The connection may also be another ingress's, or nobody's yet."""
        deadline = time.monotonic() + TAKEN_S
        while time.monotonic() < deadline and not self._over.wait(TICK_S):
            try:
                if port in {each.raddr.port for each in door.net_connections("tcp") if each.raddr}:
                    return True
            except psutil.NoSuchProcess:
                return False
        return False

    def _end(self, connection: HTTPConnection, stream: bool) -> tuple[str, str]:
        port, begun = _port(connection), False
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(self._body(stream)), self._served.headers)
            self.open.add(port)
            response = connection.getresponse()
            begun = True
            text = response.read().decode()
            return outcome(response.status, text, stream), text[-LAST:]
        except TimeoutError as error:
            return HUNG, repr(error)
        except (HTTPException, OSError) as error:
            return CUT if begun else UNANSWERED, repr(error)
        finally:
            self.open.discard(port)

    def _body(self, stream: bool) -> dict[str, Any]:
        number = next(self._numbers)
        least = self._letters + number % 4 * (self._letters // 4)  # so that clients do not end together
        most = least + min(SPAN, self._letters // 2) + number % GRAMMARS  # so that compilers have work all the time
        constraint = {"guided_regex": f"[a-z]{{{least},{most}}}", "max_tokens": most + 8, "seed": number}
        return {"messages": [{"role": "user", "content": "Go on."}], "stream": stream, **constraint}


def fitting_letters(served: Served, streaming: int, plain: int) -> int:
    """Of an answer that takes `ANSWER_S` where as many clients ask and nothing is struck, `MOST_LETTERS` at most: after a strike a client
    waits for the answer that is under way and for a whole one, and how long that is shall say what the strike did, not how fast the machine
    is.

    Raises:
        BenchFailed: not all are answered.
    """
    with Clients(served, streaming, plain, MOST_LETTERS) as clients:
        pass  # at its end all are answered once
    return fitted_letters(clients.ended)


def fitted_letters(ended: Sequence[Ended]) -> int:
    """From how long answers of `MOST_LETTERS` took. Raises BenchFailed: one of them has not ended as it should."""
    if others := [each for each in ended if each.how != WHOLE]:
        raise BenchFailed(f"nothing was struck, and not all were answered: {others[0]}")
    return min(MOST_LETTERS, math.ceil(MOST_LETTERS * ANSWER_S / median(each.ended_at - each.sent_at for each in ended)))


def outcome(status: int, text: str, stream: bool) -> str:
    """What an answer that has come to its end is."""
    if status != 200:
        return FAILED if json.loads(text)["error"]["code"] else CUT
    if not stream:
        return _judged([{"delta": choice["message"], **choice} for choice in json.loads(text)["choices"]])
    events = [line.removeprefix("data: ") for line in text.splitlines() if line]
    if any(event.startswith('{"error"') for event in events):
        return FAILED
    if not events or events[-1] != "[DONE]":
        return CUT
    return _judged([choice for event in events[:-1] for choice in json.loads(event)["choices"]])


def _judged(choices: list[dict[str, Any]]) -> str:
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    return WHOLE if re.fullmatch("[a-z]+", text) and choices[-1]["finish_reason"] == "stop" else CUT


def is_up(process: psutil.Process) -> bool:
    """One that has ended is not, whether or not its parent has taken note. The kernel takes connections for it until the last of its
    threads is gone."""
    try:
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False


def is_listening(process: psutil.Process, port: int) -> bool:
    try:
        return any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in process.net_connections("tcp"))
    except psutil.NoSuchProcess:
        return False


def ends(process: psutil.Process) -> bool:
    """Whether it has ended, or does so at once."""
    deadline = time.monotonic() + ENDS_S
    while is_up(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(TICK_S)
    return True


def _port(connection: HTTPConnection) -> int:
    port: int = connection.sock.getsockname()[1]
    return port
