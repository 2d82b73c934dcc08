"""`python -m load_tests.traces`: traces of a few requests, as a collector got them, for the guide."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import httpx
import typer

from load_tests.errors import Stuck
from load_tests.reporting.running_service import running_service
from load_tests.traces.collector import Collector, SpanRecord, collecting
from load_tests.traces.tree import HEADING, lines

PAGE = Path("docs/guide/traces.md")
BEGIN, END = "<!-- Written by `python -m load_tests.traces`. -->\n", "<!-- The end of what is written. -->\n"
PATIENCE_S = 20.0
SETTLED_S = 3.0
"""Every process sends its spans once a second."""
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
QUESTION = "Extract name, age as JSON.\n\nMeet Ada Young. Age: 36."
REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "A stream, under a grammar that nobody has asked for before": {"structured_outputs": {"json": PERSON}, "stream": True},
    "The same again": {"structured_outputs": {"json": PERSON}, "stream": True},
    "A grammar that is none": {"structured_outputs": {"regex": "(a"}},
}


def main(page: Annotated[Path, typer.Option(help="write the trees between its marks")] = PAGE) -> None:
    """Ask a service of its own (two replicas, masks by broadcaster) for a few answers, and draw their traces as trees."""
    with collecting() as collector:
        settings = {
            "model": {"num_replicas": 2, "masks": "broadcaster", "cpus_per_worker": 0.3},
            "telemetry": {"otlp_endpoint": collector.url, "sample_ratio": 0},
        }
        with running_service(settings) as url:
            found = {title: lines(_traced(url, fields, collector)) for title, fields in REQUESTS.items()}
    text = "\n".join(f"{title}:\n\n```text\n{HEADING}\n" + "\n".join(tree) + "\n```\n" for title, tree in found.items())
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    typer.echo(text)


def _traced(url: str, fields: Mapping[str, Any], collector: Collector) -> list[SpanRecord]:
    """All spans of one request. Raises Stuck: none come."""
    trace = uuid4().hex
    body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 96, "temperature": 0, **fields}
    headers = {"traceparent": f"00-{trace}-{trace[:16]}-01", "Content-Type": "application/json"}
    httpx.post(f"{url}/v1/chat/completions", content=json.dumps(body), headers=headers, timeout=120)
    return _settled(collector, trace)


def _settled(collector: Collector, trace: str) -> list[SpanRecord]:
    until, count, since = time.monotonic() + PATIENCE_S, 0, time.monotonic()
    while time.monotonic() < until:
        spans = collector.trace(trace)
        if len(spans) != count:
            count, since = len(spans), time.monotonic()
        if count and time.monotonic() - since >= SETTLED_S:
            return spans
        time.sleep(0.1)
    raise Stuck("no spans come")


if __name__ == "__main__":
    typer.run(main)
