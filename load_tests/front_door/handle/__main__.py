"""`python -m load_tests.front_door.handle`: what a job of the cluster gets by Ray handle, a client by the Responses API, and a file by
`maskcast batch`, beside chat completions over HTTP of the same service.

By handle the clients are threads of one process with the client of `deployments.client`; over HTTP they are those of
`load_tests.front_door`, which take less of the processors than any library does. By turns, in a closed loop.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.commands.progress import CaseProgress
from deployments.config import parse_settings
from deployments.reporting.report import BenchReport, Row
from load_tests.front_door.clients.messages import RESPONSES as RESPONSES_PATH
from load_tests.front_door.clients.messages import Course
from load_tests.front_door.clients.process import ClientProcess, client_process
from load_tests.front_door.figures import OURS, STREAM, WAYS
from load_tests.front_door.handle.batch import BATCH_S, batch_row
from load_tests.front_door.handle.figures import BATCH_CLIENTS, CLIENTS, HANDLE, HTTP, RESPONSES, WORKLOADS, targets
from load_tests.front_door.servers import HOST, Server, running
from load_tests.front_door.turns import measured_course, warm_up
from load_tests.front_door.workloads import Workload, make_workload
from load_tests.reporting.running_service import PACKAGES


def main(
    turns: Annotated[int, typer.Option(min=1, help="of all ways")] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, help="that are measured of each cell")] = 5.0,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compare requests a second and latency by handle, and by the Responses API, with those of chat completions over HTTP."""
    workloads = [make_workload(name, parse_settings({}).model.served_name) for name in WORKLOADS]
    rows: list[Row] = []
    total = turns * (3 * len(workloads) * len(CLIENTS) * len(WAYS) + 2)
    with client_process() as client, running(OURS, {}) as server, CaseProgress(Console(stderr=True)) as progress:
        warm_up(workloads, OURS, server, client)
        for row in _rows(workloads, server, client, turns, seconds):
            rows.append(row)
            progress.say(str(row))
            progress.show("cells", len(rows), total)
    command = f"python -m load_tests.front_door.handle --turns {turns} --seconds {seconds:g}"
    raise typer.Exit(BenchReport.here(command, PACKAGES, targets(rows), rows).publish(Console(), json_out))


def _rows(workloads: Sequence[Workload], server: Server, client: ClientProcess, turns: int, seconds: float) -> Iterator[Row]:
    joins = joining()
    for turn, workload, clients, way in product(range(turns), workloads, CLIENTS, WAYS):
        stream = way == STREAM
        bodies = workload.encoded(OURS, stream=stream)
        courses = {
            HTTP: Course(HOST, server.port, bodies, clients, stream, seconds),
            HANDLE: Course(HOST, server.port, bodies, clients, stream, seconds, joins=joins),
            RESPONSES: Course(HOST, server.port, workload.as_responses(stream=stream), clients, stream, seconds, path=RESPONSES_PATH),
        }
        for side, course in courses.items() if turn % 2 == 0 else [*courses.items()][::-1]:
            yield measured_course(server, client, turn, side, workload, course).row()
    for turn in range(turns):
        bodies = workloads[0].encoded(OURS, stream=False)
        course = Course(HOST, server.port, bodies, BATCH_CLIENTS, False, BATCH_S)
        row = measured_course(server, client, turn, HTTP, workloads[0], course).row()
        yield row
        yield batch_row(row, bodies, f"http://{HOST}:{server.port}")


def joining() -> dict[str, str]:
    """The environment by which a process joins the Ray that this one has started."""
    import ray  # it reads the environment when it is imported

    from deployments.local.ray_access import ADDRESS, CLUSTERS, MODE, TOKEN, TOKEN_PATH

    return {ADDRESS: ray.get_runtime_context().gcs_address, **{name: os.environ[name] for name in (MODE, TOKEN, TOKEN_PATH, CLUSTERS)}}


if __name__ == "__main__":
    typer.run(main)
