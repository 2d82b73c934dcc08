"""Three floods of tenants that ask alike and have different weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from deployments.reporting.quantiles import ratio
from deployments.reporting.report import Row
from load_tests.front_door.clients.messages import PieceCourse, PiecesCame
from load_tests.front_door.clients.process import ClientProcess
from load_tests.tenants.bodies import chat
from load_tests.tenants.service import HOST, SEATS

WEIGHTS = {"one": 1.0, "two": 2.0, "four": 4.0}
RAMP_S = 8.0


def share_rows(
    scenario: str,
    clients: Sequence[ClientProcess],
    port: int,
    keys: Mapping[str, str],
    seconds: float,
    began: Callable[[], None] = lambda: None,
) -> list[Row]:
    """A row for each tenant; `clients` has a process for each. `began` is called when the time that counts begins."""

    def run(number: int, name: str) -> PiecesCame:
        course = PieceCourse(HOST, port, chat(40, 64), 2 * SEATS, RAMP_S, seconds, keys[name])
        return clients[number].pieces(course, began if number == 0 else lambda: None, lambda _: None)

    with ThreadPoolExecutor(len(WEIGHTS)) as pool:
        return rows(scenario, dict(zip(WEIGHTS, pool.map(run, range(len(WEIGHTS)), WEIGHTS), strict=True)))


def rows(scenario: str, came: Mapping[str, PiecesCame]) -> list[Row]:
    """Shares of the text, by the tenants' names. Not of its pieces: what a client is too slow to read comes joined."""
    found = list[Row]()
    for name, weight in WEIGHTS.items():
        share = ratio(came[name].characters, sum(one.characters for one in came.values()))
        row = {"scenario": scenario, "tenant": name, "weight": weight, "characters": came[name].characters, "failed": came[name].failed}
        due = weight / sum(WEIGHTS.values())
        found.append({**row, "share": share and round(share, 4), "share_by_due": share and round(share / due, 4)})
    return found
