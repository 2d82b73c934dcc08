"""The one real service that the end-to-end tests share, and what they ask of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
import psutil
from openai import OpenAI
from prometheus_client.parser import text_string_to_metric_families
from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException

from deployments.local.local import LocalCluster
from grammar_service.limits import Limits
from grammar_service.messages import Compiled
from grammar_service.resolve import resolve
from grammar_service.spec import GrammarSpec
from model_service.messages import ReplicaStatus

MODEL = "maskcast-embedded"
Found = TypeVar("Found")


@dataclass(frozen=True)
class Service:
    """`key` is sent where nothing else is, empty: none."""

    url: str
    cluster: LocalCluster
    key: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def client(self) -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key=self.key or "none", max_retries=0, timeout=120)

    def post(self, path: str, body: Any, headers: Any = None, **options: Any) -> httpx.Response:
        return httpx.post(f"{self.url}{path}", json=body, timeout=120, headers={**self.headers, **(headers or {})}, **options)

    def chat(self, question: str, headers: Any = None, **fields: Any) -> httpx.Response:
        messages = [{"role": "user", "content": question}]
        body = {"model": MODEL, "messages": messages, "max_tokens": 128, **fields}
        return self.post("/v1/chat/completions", body, headers=headers)

    def text(self, question: str, **fields: Any) -> str:
        """The answer's text, which must be complete."""
        response = self.chat(question, **fields)
        assert response.status_code == 200, response.text
        choice = response.json()["choices"][0]
        assert choice["finish_reason"] == "stop", choice
        return str(choice["message"]["content"])

    def ready(self) -> dict[str, Any]:
        body: dict[str, Any] = httpx.get(f"{self.url}/readyz", timeout=30).json()
        return body

    def events(self, component: str) -> dict[str, float]:
        """Sums of the grammar counters of a component over all its processes, dead ones included."""
        sums: dict[str, float] = {}
        for labels, value in self._samples("maskcast_grammar_events_total"):
            if labels["component"] == component:
                sums[labels["event"]] = sums.get(labels["event"], 0) + value
        return sums

    def requests(self, endpoint: str) -> float:
        """That the ingresses have counted."""
        return sum(value for labels, value in self._samples("maskcast_requests_total") if labels["endpoint"] == endpoint)

    def metrics(self) -> str:
        return httpx.get(f"{self.url}/metrics", timeout=30, headers=self.headers).text

    def _samples(self, name: str) -> Iterator[tuple[dict[str, str], float]]:
        for family in text_string_to_metric_families(self.metrics()):
            yield from ((sample.labels, sample.value) for sample in family.samples if sample.name == name)

    def status(self) -> ReplicaStatus:
        """Of the one model replica, asked by handle."""
        status: ReplicaStatus = serve.get_deployment_handle("ModelReplica", "maskcast").status.remote().result(timeout_s=60)
        return status

    def artifact(self, spec: GrammarSpec) -> bytes:
        """What the compile pool holds or makes for it; the bytes hold the time of their making."""
        pool = serve.get_deployment_handle("GrammarCompiler", "maskcast")
        request = resolve(spec, Limits(), pool.fingerprint.remote().result(timeout_s=60)).request()
        answer = pool.options(session_id=request.key, method_name="compile").remote(request).result(timeout_s=60)
        assert isinstance(answer, Compiled), answer
        return answer.blob

    def routing_stats(self) -> dict[str, Any]:
        """What the one model replica tells routers."""
        handle = serve.get_deployment_handle("ModelReplica", "maskcast")
        stats: dict[str, Any] = handle.record_routing_stats.remote().result(timeout_s=60)
        return stats

    def processes(self, mark: str) -> list[psutil.Process]:
        """Processes below this one whose title or command line holds `mark`."""
        return list(_marked(psutil.Process().children(recursive=True), mark))

    def family(self) -> str:
        """All processes below this one, a line each, for the messages of failed tests."""
        return "\n".join(_described(process) for process in psutil.Process().children(recursive=True))

    def wait_until_ready(self, seconds: float = 180) -> None:
        wait_for(lambda: self.ready()["status"] == "ready", seconds, "the service to be ready")


def _marked(processes: list[psutil.Process], mark: str) -> Iterator[psutil.Process]:
    for process in processes:
        try:
            if mark in " ".join([process.name(), *process.cmdline()]):
                yield process
        except psutil.NoSuchProcess:
            continue


def _described(process: psutil.Process) -> str:
    try:
        age = time.time() - process.create_time()
        return f"{process.pid} of {process.ppid()}, {process.status()}, {age:.0f} s: {process.name()} {' '.join(process.cmdline())[:120]}"
    except psutil.NoSuchProcess:
        return f"{process.pid} has ended"


def wait_for(condition: Callable[[], Found], seconds: float, what: str) -> Found:
    """Poll until the condition holds (is truthy); a service that restarts may refuse connections meanwhile."""
    deadline = time.monotonic() + seconds
    last: object = None
    while time.monotonic() < deadline:
        try:
            if found := condition():
                return found
        except (httpx.HTTPError, RayError, RayServeException, KeyError, ValueError, TimeoutError) as error:
            last = error
        time.sleep(0.2)  # the poll's interval; nothing is assumed to be done after it
    raise AssertionError(f"waited {seconds} s in vain for {what}; last: {last!r}")
