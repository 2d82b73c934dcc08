"""What operators look at."""

from __future__ import annotations

import httpx

from tests.e2e.service import Service, wait_for


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


def test_metrics_tell_of_requests_grammars_and_the_engine(service: Service) -> None:
    assert service.text("Say.", structured_outputs={"regex": "metric-[0-9]"})

    def page() -> str:
        return httpx.get(f"{service.url}/metrics", timeout=30).text

    # Processes report every ten seconds.
    wanted = ("maskcast_requests_total", "maskcast_grammar_events_total", "maskcast_engine_steps_total")
    wait_for(lambda: all(name in page() for name in wanted), 60, "the metrics")
    assert not [label for label in ("NodeAddress", "WorkerId", "vllm", "127.0.0.1") if label in page()]
    wait_for(lambda: service.events("compiler").get("compiled", 0) >= 1, 60, "the compile to be counted")


def test_what_is_compiled_behind_an_answer_is_counted_without_another_request(service: Service) -> None:
    def made() -> float:
        return service.events("compiler").get("compiled", 0)

    before = made()
    assert service.text("Say.", structured_outputs={"regex": "(behind|after)-[0-9]{2}"})
    wait_for(lambda: made() >= before + 2, 60, "the stopgap and the grammar's own artifact to be counted")
