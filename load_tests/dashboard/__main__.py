"""`python -m load_tests.dashboard`: runs the service for some minutes, lets Prometheus scrape it, and draws the dashboard's panels."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from deployments.access.key_file import entry_text, new_key
from deployments.telemetry.dashboard import WINDOW
from load_tests.dashboard.picture import draw
from load_tests.dashboard.prometheus import Prometheus, Series, scraping
from load_tests.dashboard.traffic import Phase, drive
from load_tests.reporting.running_service import running_service

PICTURE = Path("load_tests/results/dashboard.png")
TENANTS = ("search", "billing")
RATE_S = 30
"""Seconds that rates are taken over: processes tell their agents every ten."""


def main(
    seconds: Annotated[int, typer.Option(help="of traffic; the middle third is a burst")] = 120,
    png: Annotated[Path, typer.Option(help="write the picture here")] = PICTURE,
) -> None:
    """Draw the panels of the Grafana dashboard from a run of the service, with what Prometheus answers to their queries."""
    keys = {tenant: new_key() for tenant in TENANTS}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "keys.yaml"
        file.write_text("".join(entry_text(key, tenant, ("generate", "metrics"), 1.0) for tenant, key in keys.items()))
        with running_service(_settings(file)) as url, scraping(url.removeprefix("http://"), keys[TENANTS[0]]) as prometheus:
            start = time.time()
            asyncio.run(drive(url, keys, [Phase(seconds / 3, 1), Phase(seconds / 3, 6), Phase(seconds / 3, 1)]))
            draw(partial(_series, prometheus, start, time.time()), start, png)
    typer.echo(f"written: {png}")


def _settings(keys: Path) -> dict[str, Any]:
    return {
        "http": {"metrics": "all", "api_keys_file": str(keys)},
        "model": {"masks": "broadcaster", "max_queued_requests": 4, "max_num_seqs": 4},
        "grammar": {"check_retries": 1},
    }


def _series(prometheus: Prometheus, start: float, end: float, query: str) -> list[Series]:
    return prometheus.series(query.replace(WINDOW, f"{RATE_S}s"), start, end)


if __name__ == "__main__":
    typer.run(main)
