"""What operators look at."""

from __future__ import annotations

import asyncio
import importlib.metadata

import httpx
from prometheus_client.parser import text_string_to_metric_families

from deployments.telemetry.dashboard import FILE
from deployments.telemetry.page import MetricsPage
from tests.e2e.service import Service, wait_for
from tests.published.documents import ROOT
from tests.published.promql import names


def test_the_process_is_up_and_the_service_ready(service: Service) -> None:
    assert httpx.get(f"{service.url}/healthz", timeout=30).json() == {"status": "ok"}
    ready = httpx.get(f"{service.url}/readyz", timeout=30)
    assert ready.status_code == 200
    assert ready.json() == {
        "status": "ready",
        "degraded": [],
        "replicas": {"ModelReplica": 1, "GrammarCompiler": 2},
        "wanted": {"ModelReplica": 1, "GrammarCompiler": 2},
        "redis": "up",
    }


def test_who_watched_vllm_finds_its_health(service: Service) -> None:
    for path in ("/health", "/ping"):
        answer = httpx.get(f"{service.url}{path}", timeout=30)
        assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert httpx.get(f"{service.url}/version", timeout=30).json() == {"version": importlib.metadata.version("maskcast")}
    unknown = service.post("/v1/embeddings", {"input": "Say."})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "not_found")


def test_metrics_tell_of_requests_grammars_and_the_engine(service: Service) -> None:
    assert service.text("Say.", structured_outputs={"regex": "metric-[0-9]"})

    def page() -> str:
        return httpx.get(f"{service.url}/metrics", timeout=30).text

    # Processes report every ten seconds.
    wanted = ("maskcast_requests_total", "maskcast_grammar_events_total", "maskcast_engine_steps_total")
    wait_for(lambda: all(name in page() for name in wanted), 60, "the metrics")
    assert not [label for label in ("NodeAddress", "WorkerId", "vllm", "127.0.0.1") if label in page()]
    wait_for(lambda: service.events("compiler").get("compiled", 0) >= 1, 60, "the compile to be counted")


def test_what_the_dashboard_and_the_alerts_ask_of_vllm_is_there(service: Service) -> None:
    assert service.chat("Say.", max_tokens=8, stream=True).text.endswith("data: [DONE]\n\n")
    rules = (ROOT / "k8s" / "base" / "alerts.yaml").read_text(encoding="utf-8")
    wanted = {name for text in (FILE.read_text(encoding="utf-8"), rules) for name in names(text) if name.startswith("vllm_")}
    page = MetricsPage(everything=True)

    def found() -> set[str]:
        families = text_string_to_metric_families(asyncio.run(page.read()).decode())
        return {sample.name for family in families for sample in family.samples}

    wait_for(lambda: wanted <= found(), 60, f"all of {wanted}")


def test_what_is_compiled_behind_an_answer_is_counted_without_another_request(service: Service) -> None:
    def made() -> float:
        return service.events("compiler").get("compiled", 0)

    before = made()
    assert service.text("Say.", structured_outputs={"regex": "(behind|after)-[0-9]{2}"})
    wait_for(lambda: made() >= before + 2, 60, "the stopgap and the grammar's own artifact to be counted")
