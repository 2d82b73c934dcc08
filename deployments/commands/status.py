"""What `maskcast status` shows of a running service."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from itertools import count
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from deployments.errors import StatusError

TIMEOUT_S = 10.0
EVERY_S = 5.0
"""Seconds between two reads. The service reads its metrics no more often."""
RATE_OVER = 2
"""Reads that a rate spans. Metrics are reported every ten seconds: over one read it would alternate between zero and twice its value."""


Model = TypeVar("Model", bound=BaseModel)


class Readiness(BaseModel):
    """The body of /readyz."""

    status: str
    degraded: list[str] = []
    replicas: dict[str, int] = {}
    wanted: dict[str, int] = {}
    redis: str | None = None


class Engine(BaseModel):
    replica: str
    running: int
    grammars: int
    steps: int
    restarts: int


class Cluster(Readiness):
    """The body of /v1/cluster."""

    engines: list[Engine] = []
    counters: dict[str, int] = {}
    compiles: dict[str, int] = {}
    requests_by_tenant: dict[str, int] = {}


def read_status(url: str) -> tuple[Readiness, bool]:
    """What the service says of itself, and whether it answers requests.

    Raises:
        StatusError: nothing of ours answers there.
    """
    response, body = _get(url, "/readyz")
    return _validated(Readiness, body, url), response.status_code == HTTPStatus.OK


def read_cluster(url: str, key: str | None) -> Cluster:
    """What the cluster does. Raises StatusError: nothing of ours answers there, or the key has no scope `metrics`."""
    response, body = _get(url, "/v1/cluster", {"Authorization": f"Bearer {key}"} if key else {})
    if response.is_error:
        raise StatusError(f"the service at {url} answers with {response.status_code}: {response.text[:500]}")
    return _validated(Cluster, body, url)


def _get(url: str, path: str, headers: Mapping[str, str] | None = None) -> tuple[httpx.Response, Any]:
    try:
        response = httpx.get(f"{url.rstrip('/')}{path}", timeout=TIMEOUT_S, trust_env=False, headers=headers)
        return response, response.json()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise StatusError(f"nothing answers at {url}: {error}") from error
    except ValueError as error:
        raise StatusError(f"what answers at {url} is not Maskcast") from error


def _validated(kind: type[Model], body: Any, url: str) -> Model:
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        raise StatusError(f"what answers at {url} is not Maskcast") from error


def watch_cluster(
    url: str, key: str | None, console: Console, pause: Callable[[float], None] = time.sleep, rounds: Iterable[object] | None = None
) -> None:
    """Shows the cluster until it is interrupted, or for `rounds`. Raises StatusError if the first read fails; after later failures
    the last figures stay."""
    read = deque([(time.monotonic(), read_cluster(url, key))], maxlen=RATE_OVER + 1)
    with Live(_tables(read), console=console, auto_refresh=False) as shown:
        for _ in count() if rounds is None else rounds:
            pause(EVERY_S)
            try:
                read.append((time.monotonic(), read_cluster(url, key)))
            except StatusError as error:
                shown.update(Group(_tables(read), Text(str(error))), refresh=True)
            else:
                shown.update(_tables(read), refresh=True)


def _tables(read: Sequence[tuple[float, Cluster]]) -> RenderableType:
    """The last read; rates are over all reads."""
    (began, before), (ended, now) = read[0], read[-1]
    seconds = max(ended - began, EVERY_S)
    engines = Table("replica", "running", "grammars", "steps", "restarts", title="engines", title_justify="left")
    for one in now.engines:
        engines.add_row(one.replica, str(one.running), str(one.grammars), f"{one.steps:,}", str(one.restarts))
    counters = Table("", "in all", "a second", title="counted", title_justify="left")
    for name, value in now.counters.items():
        counters.add_row(name.replace("_", " "), f"{value:,}", f"{max(0, value - before.counters.get(name, 0)) / seconds:,.1f}")
    tenants = Table("tenant", "requests", title="tenants", title_justify="left")
    for tenant, requests in now.requests_by_tenant.items():
        tenants.add_row(tenant or "–", f"{requests:,}")
    return Columns([_deployments(now), engines, counters, tenants])


def show_status(readiness: Readiness, console: Console) -> None:
    console.print(_deployments(readiness))
    console.print(f"redis: {readiness.redis or 'not configured'}", highlight=False)
    if readiness.degraded:
        console.print(f"missing: {', '.join(readiness.degraded)}", highlight=False)


def _deployments(readiness: Readiness) -> Table:
    table = Table("deployment", "running", "wanted", title=f"maskcast: {readiness.status}", title_justify="left")
    for name, wanted in readiness.wanted.items():
        table.add_row(name, str(readiness.replicas.get(name, 0)), str(wanted))
    return table
