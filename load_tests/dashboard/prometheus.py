"""A Prometheus server of its own (of Debian's packages: `apt-get install prometheus`), for as long as it is asked."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import yaml

from deployments.local.ports import free_port
from load_tests.errors import BenchFailed

HOST = "127.0.0.1"
SCRAPE_S = 5
START_S = 30.0
STEP_S = 10
"""Between two points of a series: as often as processes tell their agents."""


@dataclass(frozen=True, slots=True)
class Series:
    labels: dict[str, str]
    points: list[tuple[float, float]]
    """Seconds since the epoch, values."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    url: str

    def series(self, query: str, start: float, end: float) -> list[Series]:
        """What a query comes to in a time. Raises BenchFailed: the query is wrong."""
        asked = {"query": query, "start": str(start), "end": str(end), "step": str(STEP_S)}
        body = httpx.get(f"{self.url}/api/v1/query_range", params=asked, timeout=30).json()
        if body["status"] != "success":
            raise BenchFailed(f"{query}: {body.get('error')}")
        return [Series(one["metric"], [(float(at), float(value)) for at, value in one["values"]]) for one in body["data"]["result"]]


@contextmanager
def scraping(target: str, key: str) -> Iterator[Prometheus]:
    """Reads `/metrics` of `target` (host and port) with an API key. Raises BenchFailed: Prometheus is not installed, or does not start."""
    program = shutil.which("prometheus")
    if program is None:
        raise BenchFailed("prometheus is not installed; Debian has it as a package")
    with TemporaryDirectory() as folder:
        file, address = Path(folder) / "prometheus.yaml", f"{HOST}:{free_port(HOST)}"
        job = {
            "job_name": "maskcast",
            "authorization": {"credentials": key},
            "static_configs": [{"targets": [target]}],
        }
        file.write_text(yaml.safe_dump({"global": {"scrape_interval": f"{SCRAPE_S}s"}, "scrape_configs": [job]}))
        command = [
            program,
            f"--config.file={file}",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={address}",
            "--log.level=warn",
        ]
        process = subprocess.Popen(command)
        try:
            _wait(f"http://{address}", process)
            yield Prometheus(f"http://{address}")
        finally:
            process.terminate()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(f"{url}/-/ready", timeout=5).is_success:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise BenchFailed("Prometheus does not start")
