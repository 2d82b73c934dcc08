"""One trace tells of one request, from its headers to its last byte, over all processes."""

from __future__ import annotations

from itertools import pairwise

from ray import serve

from load_tests.traces.collector import Collector
from tests.e2e.asked_trace import Asked
from tests.e2e.service import MODEL, Service

REQUEST = "POST /v1/chat/completions"
FORCED = "traced-"
"""What every answer begins with, a prefix that the grammar forces."""


def test_a_streamed_request_is_one_tree(service: Service, collector: Collector) -> None:
    asked = Asked(collector)
    response = service.chat("Say.", structured_outputs={"regex": f"{FORCED}[a-f]{{6}}"}, stream=True, headers=asked.headers)
    assert response.text.endswith("data: [DONE]\n\n")
    tree = asked.tree(REQUEST, "compile", "decode", "masks", "llm_request")
    root = tree.one(REQUEST)
    assert root.parent == asked.caller
    assert response.headers["traceparent"] == f"00-{asked.trace}-{root.id}-01"
    assert tree.below(REQUEST) == {"constraint", "call"}
    assert tree.path("compile") == [REQUEST, "constraint", "prepare", "compile"]
    assert tree.below("call") == {"route", "answer"}
    assert tree.below("answer") == {"queue", "prefill", "decode", "masks", "llm_request"}
    assert not [span.name for span in tree.spans if span.error]


def test_its_spans_tell_what_was_done(service: Service, collector: Collector) -> None:
    asked = Asked(collector)
    regex = f"{FORCED}told-[a-f]{{6}}"
    first = service.chat("Say.", structured_outputs={"regex": regex}, headers=asked.headers).json()
    tree = asked.tree(REQUEST, "compile", "masks", "llm_request")
    constraint, answer, masks = tree.told("constraint"), tree.told("answer"), tree.told("masks")
    assert (constraint["form"], constraint["kind"]) == ("structured_outputs.regex", "regex")
    assert constraint["tier"] == tree.told("compile")["tier"] == "compiled"
    assert constraint["backend"] == tree.told("compile")["backend"]
    usage = first["usage"]
    assert answer["forced_tokens"] == usage["completion_tokens_details"]["forced_tokens"] > 0
    assert answer["sampled_tokens"] == usage["completion_tokens"] - answer["forced_tokens"]
    assert masks["frames"] >= answer["sampled_tokens"] > 0
    assert tree.told("prefill")["prompt_tokens"] == usage["prompt_tokens"]
    ends = [tree.one(name) for name in ("queue", "prefill", "decode")]
    assert all(one.ended_ns == other.began_ns for one, other in pairwise(ends))
    assert tree.one("answer").began_ns <= ends[0].began_ns
    assert ends[-1].ended_ns <= tree.one("answer").ended_ns

    again = Asked(collector)
    service.chat("Say.", structured_outputs={"regex": regex}, headers=again.headers)
    assert again.tree(REQUEST, "llm_request").told("constraint")["tier"] in {"ingress", "memory", "compiled"}


def test_a_refused_request_ends_at_its_constraint(service: Service, collector: Collector) -> None:
    asked = Asked(collector)
    assert service.chat("Say.", structured_outputs={"regex": "(secret-of-the-user"}, headers=asked.headers).status_code == 400
    tree = asked.tree(REQUEST)
    assert [span.name for span in tree.spans] == [REQUEST, "constraint"]
    assert tree.one("constraint").error == "invalid_grammar"
    assert tree.told(REQUEST)["http.response.status_code"] == 400
    assert not tree.one(REQUEST).error
    assert "secret" not in str(tree)


def test_a_request_by_handle_is_below_the_span_of_its_job(service: Service, collector: Collector) -> None:
    asked = Asked(collector)
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Say."}], "max_tokens": 4}
    serve.get_app_handle("maskcast").generate.remote("chat", body, asked.traceparent).result(timeout_s=60)
    tree = asked.tree("request", "llm_request")
    assert tree.one("request").parent == asked.caller
    assert tree.path("llm_request") == ["request", "call", "answer", "llm_request"]


def test_what_its_caller_does_not_want_traced_is_not(service: Service, collector: Collector) -> None:
    unwanted, wanted = Asked(collector), Asked(collector)
    response = service.chat("Say.", max_tokens=2, headers={"traceparent": unwanted.traceparent.removesuffix("01") + "00"})
    assert response.headers["traceparent"].split("-")[1] == unwanted.trace
    service.chat("Say.", max_tokens=2, headers=wanted.headers)
    # Sent by the same processes, later than the other's would have been.
    assert wanted.tree(REQUEST, "answer", "llm_request")
    assert collector.trace(unwanted.trace) == []
