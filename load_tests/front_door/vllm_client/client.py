"""vLLM's benchmark client as a process of its own (vLLM 0.32: `vllm bench serve`, `benchmarks/serve.py`)."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.reporting.report import Row
from load_tests.errors import BenchFailed

PROMPT_TOKENS, ANSWER_TOKENS = 64, 96
TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Drive:
    """So many `requests` of `clients` at a time, each streamed; `more` are fields of each body. The prompts are vLLM's random ones."""

    clients: int
    requests: int
    more: Mapping[str, Any]

    def arguments(self, url: str, model: str, folder: str) -> list[str]:
        given = {
            "backend": "openai-chat",
            "endpoint": "/v1/chat/completions",
            "base-url": url,
            "model": model,
            "tokenizer": str(EMBEDDED_WEIGHTS),
            "dataset-name": "random",
            "random-input-len": PROMPT_TOKENS,
            "random-output-len": ANSWER_TOKENS,
            "num-prompts": self.requests,
            "max-concurrency": self.clients,
            "num-warmups": self.clients,
            "temperature": 0,
            "percentile-metrics": "ttft,e2el",
            "metric-percentiles": "50,99",
            "extra-body": json.dumps(self.more),
            "result-dir": folder,
            "result-filename": "result.json",
        }
        pairs = [text for name, value in given.items() for text in (f"--{name}", str(value))]
        return [*pairs, "--save-result", "--disable-tqdm"]


def driven(drive: Drive, url: str, model: str) -> Row:
    """What the client says of the server at `url`, in the words of our own rows. Raises BenchFailed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", __name__, *drive.arguments(url, model, folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode:
            raise BenchFailed(f"vLLM's benchmark client fails: {done.stderr[-2000:]}")
        found = json.loads((Path(folder) / "result.json").read_text(encoding="utf-8"))
    return {
        "clients": drive.clients,
        "answers": "stream",
        "requests": found["completed"],
        "failed": found["failed"],
        "requests_per_s": round(found["request_throughput"], 2),
        "first_text_p50_ms": round(found["median_ttft_ms"], 1),
        "first_text_p99_ms": round(found["p99_ttft_ms"], 1),
        "latency_p50_ms": round(found["median_e2el_ms"], 1),
        "latency_p99_ms": round(found["p99_e2el_ms"], 1),
    }


def main() -> None:
    # vLLM's own command asks for the version of a package of that name, which its build for processors has not.
    from vllm.benchmarks import serve

    parser = argparse.ArgumentParser()
    serve.add_cli_args(parser)
    serve.main(parser.parse_args())


if __name__ == "__main__":
    main()
