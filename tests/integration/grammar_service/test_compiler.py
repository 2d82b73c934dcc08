from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from grammar_service.artifact import decode
from grammar_service.backends import backend_named
from grammar_service.cache import MemoryCache, RedisCache, TieredCache
from grammar_service.limits import Limits
from grammar_service.messages import Compiled, CompileRequest, Refusal
from grammar_service.resolve import resolve
from grammar_service.service import GrammarCompiler
from grammar_service.source import GrammarSource
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.tokenizer import GrammarTokenizer
from tests.driving import accepts, schema_spec
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess, redis_process

pytestmark = pytest.mark.asyncio(loop_scope="module")
SECRET = b"secret"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with redis_process(tmp_path_factory.mktemp("redis")) as process:
        yield process


def cache_of(server: RedisProcess) -> TieredCache:
    return TieredCache(MemoryCache(1 << 24), RedisCache(server.url, PASSWORD, "test", 500, 60, 1 << 24))


def compiler_of(server: RedisProcess, model_folder: Path, max_queued: int = 8) -> GrammarCompiler:
    return GrammarCompiler(model_folder, None, Limits(), 20.0, 1 << 30, cache_of(server), SECRET, max_queued)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def compiler(server: RedisProcess, model_folder: Path) -> AsyncIterator[GrammarCompiler]:
    compiler = compiler_of(server, model_folder)
    await compiler.start()
    yield compiler
    await compiler.close()


def request_of(compiler: GrammarCompiler, spec: GrammarSpec, deadline_s: float | None = None) -> CompileRequest:
    grammar = resolve(spec, Limits(), compiler.fingerprint)
    return CompileRequest(grammar.spec, grammar.key, grammar.backend, deadline_s)


async def compiled(compiler: GrammarCompiler, spec: GrammarSpec) -> Compiled:
    answer = await compiler.compile(request_of(compiler, spec))
    assert isinstance(answer, Compiled)
    return answer


async def test_an_artifact_travels_from_the_pool_to_a_matcher(compiler: GrammarCompiler, model_folder: Path) -> None:
    answer = await compiled(compiler, schema_spec({"type": "object", "properties": {"a": {"type": "integer"}}}))
    artifact = decode(answer.blob, SECRET, key=answer.key, fingerprint=compiler.fingerprint)
    grammar = backend_named(artifact.header.backend).load(artifact.payload, GrammarTokenizer.load(model_folder))
    assert accepts(grammar, '{"a": 1}')
    assert not accepts(grammar, '{"a": "x"}')
    assert artifact.header.compile_ms > 0


async def test_one_grammar_asked_many_times_at_once_is_compiled_once(compiler: GrammarCompiler) -> None:
    before = (await compiler.counters())["compiled"]
    answers = await asyncio.gather(*(compiled(compiler, GrammarSpec(GrammarKind.REGEX, "many|times")) for _ in range(30)))
    assert len({answer.blob for answer in answers}) == 1
    assert (await compiler.counters())["compiled"] == before + 1
    assert (await compiled(compiler, GrammarSpec(GrammarKind.REGEX, "many|times"))).source == "memory"


async def test_another_replica_finds_it_in_redis(compiler: GrammarCompiler, server: RedisProcess, model_folder: Path) -> None:
    spec = GrammarSpec(GrammarKind.REGEX, "shared")
    first = await compiled(compiler, spec)
    other = compiler_of(server, model_folder)
    try:
        await other.start()
        answer = await compiled(other, spec)
    finally:
        await other.close()
    assert answer.source == "redis"
    assert answer.blob == first.blob


async def test_a_tampered_value_in_redis_is_compiled_again(compiler: GrammarCompiler, server: RedisProcess) -> None:
    spec = GrammarSpec(GrammarKind.REGEX, "tampered")
    request = request_of(compiler, spec)
    server.client.set(f"test:artifact:1:{request.key}", b"MKA\x01" + bytes(500))
    assert (await compiled(compiler, spec)).source == "compiled"
    assert (await compiler.counters())["corrupt"] >= 1


async def test_faults_are_refusals_with_code_and_pointer(compiler: GrammarCompiler) -> None:
    spec = GrammarSpec(GrammarKind.EBNF, "root ::= missing")
    answer = await compiler.compile(request_of(compiler, spec))
    assert isinstance(answer, Refusal)
    assert answer.code == "invalid_grammar"
    slow = GrammarSpec(GrammarKind.EBNF, "root ::= " + " | ".join(f'"value number {index}"' for index in range(15_000)))
    answer = await compiler.compile(request_of(compiler, slow, deadline_s=0.1))
    assert isinstance(answer, Refusal)
    assert answer.code == "grammar_compile_timeout"
    assert (await compiled(compiler, GrammarSpec(GrammarKind.REGEX, "after"))).source == "compiled"


async def test_a_key_that_is_not_the_grammars_is_not_believed(compiler: GrammarCompiler) -> None:
    request = request_of(compiler, GrammarSpec(GrammarKind.REGEX, "one"))
    answer = await compiler.compile(CompileRequest(GrammarSpec(GrammarKind.REGEX, "two"), request.key, request.backend))
    assert isinstance(answer, Refusal)
    assert answer.code == "pool_unavailable"


async def test_a_full_queue_is_busy(compiler: GrammarCompiler) -> None:
    specs = [GrammarSpec(GrammarKind.REGEX, f"queued{index}") for index in range(20)]
    answers = await asyncio.gather(*(compiler.compile(request_of(compiler, spec)) for spec in specs))
    assert [answer for answer in answers if isinstance(answer, Refusal) and answer.code == "pool_busy"]
    assert [answer for answer in answers if isinstance(answer, Compiled)]


async def test_a_model_replica_reads_what_the_pool_wrote(compiler: GrammarCompiler, server: RedisProcess) -> None:
    source = GrammarSource(cache_of(server), compiler.compile, SECRET, compiler.fingerprint, Limits())
    grammar = source.resolve(GrammarSpec(GrammarKind.REGEX, "read by a replica"))
    blob = await source.get(grammar)
    assert await source.get(grammar) == blob
    second = GrammarSource(cache_of(server), compiler.compile, SECRET, compiler.fingerprint, Limits())
    assert await second.get(grammar) == blob
    assert second.counters()["redis_hits"] == 1
    assert second.counters()["pool_calls"] == 0
    await source.close()
    await second.close()
