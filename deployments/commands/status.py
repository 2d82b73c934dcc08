"""What `maskcast status` shows of a running service."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import httpx
from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.table import Table

from deployments.errors import StatusError

TIMEOUT_S = 10.0


class Readiness(BaseModel):
    """The body of /readyz."""

    status: str
    degraded: list[str] = []
    replicas: dict[str, int] = {}
    wanted: dict[str, int] = {}
    redis: str | None = None


def read_status(url: str) -> tuple[Readiness, bool]:
    """What the service says of itself, and whether it answers requests.

    Raises:
        StatusError: nothing of ours answers there.
    """
    try:
        response = httpx.get(f"{url.rstrip('/')}/readyz", timeout=TIMEOUT_S, trust_env=False)
        body: Any = response.json()
        return Readiness.model_validate(body), response.status_code == HTTPStatus.OK
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise StatusError(f"nothing answers at {url}: {error}") from error
    except (ValueError, ValidationError) as error:
        raise StatusError(f"what answers at {url} is not Maskcast") from error


def show_status(readiness: Readiness, console: Console) -> None:
    table = Table("deployment", "running", "wanted", title=f"maskcast: {readiness.status}", title_justify="left")
    for name, wanted in readiness.wanted.items():
        table.add_row(name, str(readiness.replicas.get(name, 0)), str(wanted))
    console.print(table)
    console.print(f"redis: {readiness.redis or 'not configured'}", highlight=False)
    if readiness.degraded:
        console.print(f"missing: {', '.join(readiness.degraded)}", highlight=False)
