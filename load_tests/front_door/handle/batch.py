"""The same questions as a file for `maskcast batch`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from deployments.reporting.report import Row
from load_tests.errors import BenchFailed
from load_tests.front_door.handle.figures import BATCH, BATCH_CLIENTS

BATCH_S = 30.0
"""What a closed loop does in so many seconds is one batch: beside that, its start is little."""


def batch_row(loop: Row, bodies: Sequence[bytes], url: str) -> Row:
    """As many requests as those of `loop`, a row of a closed loop, answered by `maskcast batch`; what it takes to start counts."""
    count = max(1, round(loop["requests_per_s"] * loop["seconds"]))
    with tempfile.TemporaryDirectory(prefix="maskcast-batch-") as folder:
        asked, answered = Path(folder) / "in.jsonl", Path(folder) / "out.jsonl"
        asked.write_text("\n".join(_line(number, bodies[number % len(bodies)]) for number in range(count)), encoding="utf-8")
        tool = Path(sys.executable).parent / "maskcast"
        command = [*map(str, (tool, "batch", asked, "-o", answered, "--url", url, "--concurrency", BATCH_CLIENTS))]
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
        if not answered.is_file():
            raise BenchFailed(f"maskcast batch does not answer: {done.stderr[-2000:]}")
        told = [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]
    failed = count - sum(line["error"] is None and line["response"]["status_code"] == 200 for line in told)
    figures = {"seconds": round(seconds, 3), "requests": count, "failed": failed, "requests_per_s": round(count / seconds, 2)}
    same = {name: loop[name] for name in ("turn", "workload", "clients", "answers")}
    return {**same, "side": BATCH, **figures, "wrong": 0}


def _line(number: int, body: bytes) -> str:
    return f'{{"custom_id": "{number}", "url": "/v1/chat/completions", "body": {body.decode()}}}'
