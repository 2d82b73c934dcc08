"""The arms of the comparison: how each one puts an ask to its engine."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import Protocol

from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

from grammar_service.backends import backend_named
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.jump_forward.engines import CountedEngine
from load_tests.jump_forward.figures import STOCK, UNCONSTRAINED
from load_tests.jump_forward.stock_constraint import stock_constraint
from load_tests.jump_forward.tasks import Ask
from model_service.artifact_channel import ArtifactServer, Payload
from model_service.messages import KEY_ARGUMENT


class Arm(Protocol):
    """`length` is what stock vLLM's answer to the same ask had, in tokens."""

    @property
    def name(self) -> str: ...

    @property
    def host(self) -> CountedEngine: ...

    def params(self, ask: Ask, max_tokens: int, length: int | None) -> SamplingParams: ...


class StockArm:
    """vLLM with its own structured outputs."""

    name = STOCK

    def __init__(self, host: CountedEngine) -> None:
        self.host = host
        self._constraints: dict[GrammarSpec, dict[str, str]] = {}

    def params(self, ask: Ask, max_tokens: int, length: int | None) -> SamplingParams:
        if ask.spec not in self._constraints:
            self._constraints[ask.spec] = stock_constraint(ask.spec)
        return SamplingParams(**_greedy(max_tokens), structured_outputs=StructuredOutputsParams(**self._constraints[ask.spec]))


class UnconstrainedArm:
    """vLLM without any constraint, for answers as long as the constrained ones were."""

    name = UNCONSTRAINED

    def __init__(self, host: CountedEngine) -> None:
        self.host = host

    def params(self, ask: Ask, max_tokens: int, length: int | None) -> SamplingParams:
        tokens = length or max_tokens
        return SamplingParams(**_greedy(tokens), min_tokens=tokens, ignore_eos=True)


class MaskcastArm:
    """Maskcast's engine; its grammars are offered on the artifact channel, as a replica offers them."""

    def __init__(self, name: str, host: CountedEngine, keys: dict[GrammarSpec, str]) -> None:
        self.name = name
        self.host = host
        self._keys = keys

    def params(self, ask: Ask, max_tokens: int, length: int | None) -> SamplingParams:
        return SamplingParams(**_greedy(max_tokens), extra_args={KEY_ARGUMENT: self._keys[ask.spec]})


def offer(
    specs: Iterable[GrammarSpec], tokenizer: GrammarTokenizer, server: ArtifactServer, until: AsyncExitStack
) -> dict[GrammarSpec, str]:
    """Compile the specs and offer them until the stack is closed; their keys."""
    backends = {name: backend_named(name) for name in ("xgrammar", "llguidance", "automata")}
    keys: dict[GrammarSpec, str] = {}
    for spec in dict.fromkeys(specs):
        resolved = resolve(spec, Limits(), tokenizer.fingerprint)
        payload = Payload(resolved.backend, backends[resolved.backend].compile(spec, tokenizer).data)
        until.enter_context(server.offered(resolved.key, partial(_itself, payload)))
        keys[spec] = resolved.key
    return keys


def _itself(payload: Payload) -> Payload:
    return payload


def _greedy(max_tokens: int) -> dict[str, object]:
    return {"temperature": 0.0, "max_tokens": max_tokens, "output_kind": RequestOutputKind.DELTA}
