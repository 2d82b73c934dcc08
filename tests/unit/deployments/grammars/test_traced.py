"""A compile replica with a span around its answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployments.grammars.traced import TracedCompiler
from grammar_service.messages import Compiled, CompileRequest, Refusal
from grammar_service.spec import GrammarKind, GrammarSpec
from tests.recorded_spans import SAMPLED, RecordedSpans, parent, told

REQUEST = CompileRequest(GrammarSpec(GrammarKind.REGEX, "a+"), "key", "xgrammar", trace=SAMPLED)


class Answering:
    def __init__(self, answer: Compiled | Refusal) -> None:
        self.answer = answer

    async def compile(self, request: CompileRequest) -> Compiled | Refusal:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected", "fault"),
    [
        (
            Compiled("other", b"12345", "redis", 1.5, "llguidance"),
            {"kind": "regex", "tier": "redis", "backend": "llguidance", "bytes": 5, "cost_ms": 1.5, "stopgap": True},
            None,
        ),
        (Refusal("invalid_grammar", "a message"), {"kind": "regex", "error.type": "invalid_grammar"}, "invalid_grammar"),
    ],
)
async def test_it_tells_where_the_artifact_came_from(answer: Compiled | Refusal, expected: dict[str, object], fault: str | None) -> None:
    recorded = RecordedSpans()
    compiler = TracedCompiler(Answering(answer), recorded.tracing)
    assert await compiler.compile(REQUEST) is answer
    span = recorded.one("compile")
    assert (told(span), span.status.description, parent(span)) == (expected, fault, SAMPLED.split("-")[2])


async def test_what_nobody_traces_has_no_span() -> None:
    recorded = RecordedSpans()
    answer = Refusal("invalid_grammar", "a message")
    assert await TracedCompiler(Answering(answer), recorded.tracing).compile(replace(REQUEST, trace="")) is answer
    assert recorded.spans == []
