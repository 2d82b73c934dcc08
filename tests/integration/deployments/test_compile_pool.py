from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import pytest_asyncio
from ray.serve.handle import DeploymentHandle

from deployments.config import Settings
from deployments.grammars.pool import CompilePool
from deployments.grammars.prepared import PreparedGrammars
from grammar_service.errors import InvalidGrammar
from grammar_service.limits import Limits
from grammar_service.messages import Compiled
from grammar_service.resolve import resolve
from grammar_service.spec import GrammarKind, GrammarSpec
from tests.driving import schema_spec
from tests.integration.grammar_service.redis_process import RedisProcess

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]
REQUESTS = 200


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(pool_handle: DeploymentHandle[Any]) -> CompilePool:
    pool = CompilePool(pool_handle)
    await pool.fingerprint()
    return pool


async def test_two_hundred_requests_for_one_new_key_compile_it_once(pool: CompilePool) -> None:
    spec = GrammarSpec(GrammarKind.EBNF, "root ::= " + " | ".join(f'"number {index}"' for index in range(300)))
    request = resolve(spec, Limits(), await pool.fingerprint()).request()
    answers = await asyncio.gather(*(pool.compile(request) for _ in range(REQUESTS)))
    assert all(isinstance(answer, Compiled) for answer in answers)
    # The bytes hold the time of their making: two compiles would not be alike.
    assert len({answer.blob for answer in answers if isinstance(answer, Compiled)}) == 1


async def test_a_cold_grammar_is_answered_on_the_quick_backend_and_then_on_its_own(pool: CompilePool) -> None:
    grammar = resolve(schema_spec({"type": "object", "properties": {"cold": {"type": "integer"}}}), Limits(), await pool.fingerprint())
    assert grammar.stopgap is not None
    first = await pool.prepare(grammar.request())
    assert (first.key, first.backend) == (grammar.stopgap.key, "llguidance")
    made = await pool.compile(grammar.request(pinned=True))  # waits for the same flight
    assert isinstance(made, Compiled)
    second = await pool.prepare(grammar.request())
    assert (second.key, second.backend) == (grammar.key, "xgrammar")


async def test_a_known_fault_is_refused_by_every_replica_without_compiling(pool: CompilePool, redis_server: RedisProcess) -> None:
    grammar = resolve(GrammarSpec(GrammarKind.EBNF, "root ::= nowhere"), Limits(), await pool.fingerprint())
    for _ in range(2):
        with pytest.raises(InvalidGrammar, match="compile"):
            await pool.prepare(grammar.request())
    assert [key for key in redis_server.client.keys("*") if grammar.key.encode() in key]


async def test_the_ingress_side_moves_from_the_stopgap_to_the_compiled_grammar(pool: CompilePool, settings: Settings) -> None:
    now = 0.0
    grammars = PreparedGrammars(pool, Limits(), await pool.fingerprint(), clock=lambda: now)
    spec = schema_spec({"type": "object", "properties": {"moves": {"type": "boolean"}}, "required": ["moves"]})
    stopgap = await grammars.ready(spec)
    assert stopgap.backend == "llguidance"
    await pool.compile(resolve(spec, Limits(), await pool.fingerprint()).request(pinned=True))
    now += 1.0
    compiled = await grammars.ready(spec)
    assert compiled.backend == "xgrammar"
    assert stopgap.routing_key == compiled.routing_key == compiled.key != stopgap.key
    assert json.loads(spec.text)["required"] == ["moves"]
