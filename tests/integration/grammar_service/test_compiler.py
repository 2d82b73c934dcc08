from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from grammar_service.artifacts.artifact import decode
from grammar_service.artifacts.cache import MemoryCache, RedisCache, TieredCache
from grammar_service.artifacts.seal import Seal
from grammar_service.backends import backend_named
from grammar_service.compiler.service import GrammarCompiler
from grammar_service.compiler.source import GrammarSource
from grammar_service.errors import InvalidGrammar
from grammar_service.limits import Limits
from grammar_service.messages import Compiled, CompileRequest, Refusal
from grammar_service.resolve import Resolution, resolve
from grammar_service.sandbox import SandboxSettings
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, schema_spec
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess, redis_process
from tests.waiting import PATIENCE_S, TICK_S

pytestmark = pytest.mark.asyncio(loop_scope="module")
SECRET = b"secret"
PATIENT_S = 10.0
"""A head start for Redis that lasts, so that a busy machine does not turn a hit into a miss."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with redis_process(tmp_path_factory.mktemp("redis")) as process:
        yield process


def cache_of(server: RedisProcess) -> TieredCache:
    return TieredCache(MemoryCache(1 << 24), RedisCache(server.url, PASSWORD, "test", 10_000, 60, 1 << 24))


def compiler_of(server: RedisProcess, model_folder: Path, max_queued: int = 8) -> GrammarCompiler:
    sandbox = SandboxSettings(memory_limit_bytes=1 << 30, max_waiting=max_queued)
    return GrammarCompiler(model_folder, 20.0, sandbox, cache_of(server), SECRET, PATIENT_S)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def compiler(server: RedisProcess, model_folder: Path) -> AsyncIterator[GrammarCompiler]:
    compiler = compiler_of(server, model_folder)
    await compiler.start()
    yield compiler
    await compiler.close()


def request_of(compiler: GrammarCompiler, spec: GrammarSpec, deadline_s: float | None = None, tenant: str = "") -> CompileRequest:
    grammar = resolve(spec, Limits(), compiler.fingerprint)
    return CompileRequest(grammar.spec, grammar.key, grammar.backend, deadline_s, tenant=tenant)


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
    server.client.set(f"test:artifact:2:{request.key}", b"MKA\x02" + bytes(500))
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


async def test_a_cold_grammar_is_answered_on_its_stopgap_and_compiled_behind_it(compiler: GrammarCompiler) -> None:
    grammar = resolve(schema_spec({"type": "object", "properties": {"cold": {"type": "integer"}}}), Limits(), compiler.fingerprint)
    assert grammar.stopgap is not None
    first = await compiler.compile(grammar.request())
    assert isinstance(first, Compiled)
    assert (first.key, first.backend) == (grammar.stopgap.key, "llguidance")
    waited = await compiler.compile(grammar.request(pinned=True))  # joins the flight behind the stopgap
    assert isinstance(waited, Compiled)
    second = await compiler.compile(grammar.request())
    assert isinstance(second, Compiled)
    assert (second.key, second.backend, second.source) == (grammar.key, "xgrammar", "memory")
    assert (await compiler.counters())["stopgaps"] == 1


async def test_redis_is_asked_at_most_once_by_each_request_for_a_cold_grammar_with_a_stopgap(compiler: GrammarCompiler) -> None:
    grammar = resolve(schema_spec({"type": "object", "properties": {"asked": {"type": "integer"}}}), Limits(), compiler.fingerprint)
    before = await compiler.counters()
    assert isinstance(await compiler.compile(grammar.request()), Compiled)
    # Joins the flight behind the stopgap, which goes out when Redis has answered the first one.
    assert isinstance(await compiler.compile(grammar.request(pinned=True)), Compiled)
    after = await compiler.counters()
    # Once in all where the second comes when the compile is over, or while the first still asks.
    assert 1 <= after["misses"] - before["misses"] <= 2
    assert after["redis_server_misses"] - before["redis_server_misses"] <= 2


def with_bounded_strings(most: int) -> GrammarSpec:
    """The more, the longer it takes to compile: seconds at 32."""
    bounds = [(least, longest) for longest in range(10, most + 1) for least in range(longest)]
    properties = {f"p{least}_{longest}": {"type": "string", "minLength": least, "maxLength": longest} for least, longest in bounds}
    return schema_spec({"type": "object", "properties": properties})


async def test_a_grammar_too_slow_to_compile_stays_on_its_stopgap_and_is_left_alone(model_folder: Path) -> None:
    compiler = GrammarCompiler(model_folder, 1.0, SandboxSettings(workers=1), TieredCache(MemoryCache(1 << 24), None), SECRET)
    try:
        await compiler.start()
        grammar = resolve(with_bounded_strings(32), Limits(), compiler.fingerprint)
        for _ in range(3):
            answer = await compiler.compile(grammar.request())
            assert isinstance(answer, Compiled)
            assert answer.backend == "llguidance"
            waited = await compiler.compile(replace(grammar.request(), stopgap=None))
            assert isinstance(waited, Refusal)
            assert waited.code == "grammar_compile_timeout"
        assert (await compiler.counters())["compiled"] == 1  # the stopgap itself
    finally:
        await compiler.close()


async def test_a_deadline_of_one_client_keeps_a_grammar_from_nobody_else(compiler: GrammarCompiler) -> None:
    grammar = resolve(with_bounded_strings(18), Limits(), compiler.fingerprint)
    # Long enough for the stopgap; what is compiled behind it is for everybody.
    assert await compiler.compile(grammar.request(deadline_s=0.1))
    end = time.monotonic() + PATIENCE_S
    answer = await compiler.compile(grammar.request())
    while not (isinstance(answer, Compiled) and answer.key == grammar.key):
        assert time.monotonic() < end
        await asyncio.sleep(TICK_S)
        answer = await compiler.compile(grammar.request())


async def test_whoever_joins_a_compile_that_was_given_less_time_gets_his_own(compiler: GrammarCompiler) -> None:
    spec = GrammarSpec(GrammarKind.EBNF, "root ::= " + " | ".join(f'"joined {index}"' for index in range(4_000)))
    hasty, patient = await asyncio.gather(
        compiler.compile(request_of(compiler, spec, deadline_s=0.05)), compiler.compile(request_of(compiler, spec))
    )
    assert isinstance(patient, Compiled)
    # Whoever hears from Redis first starts the compile, so that the hasty one may join the other's.
    assert isinstance(hasty, Compiled) or hasty.code == "grammar_compile_timeout"


async def test_a_fault_that_lasts_is_remembered_in_redis_and_a_timeout_is_not(
    compiler: GrammarCompiler, server: RedisProcess, model_folder: Path
) -> None:
    fault = request_of(compiler, GrammarSpec(GrammarKind.EBNF, "root ::= nobody"))
    slow = GrammarSpec(GrammarKind.EBNF, "root ::= " + " | ".join(f'"number {index}"' for index in range(15_000)))
    assert isinstance(await compiler.compile(fault), Refusal)
    assert isinstance(await compiler.compile(request_of(compiler, slow, deadline_s=0.05)), Refusal)
    other = compiler_of(server, model_folder)
    try:
        await other.start()
        answer = await other.compile(fault)
        assert isinstance(answer, Refusal)
        assert answer.code == "invalid_grammar"
        assert (await other.counters())["remembered"] == 1
        assert (await other.counters())["refused"] == 1
    finally:
        await other.close()
    assert not server.client.exists(f"test:artifact:2:{request_of(compiler, slow).key}")


async def test_a_refusal_in_redis_that_nobody_here_has_written_is_not_believed(compiler: GrammarCompiler, server: RedisProcess) -> None:
    request = request_of(compiler, GrammarSpec(GrammarKind.REGEX, "slandered"))
    forger = Seal(b"another secret")
    forger.fingerprint = compiler.fingerprint
    server.client.set(f"test:artifact:2:{request.key}", forger.refusal(request, InvalidGrammar("never")).blob)
    assert (await compiled(compiler, request.spec)).source == "compiled"


async def test_a_pinned_grammar_stays_in_memory(server: RedisProcess, model_folder: Path) -> None:
    cache = TieredCache(MemoryCache(4000), None)
    compiler = GrammarCompiler(model_folder, 20.0, SandboxSettings(workers=1), cache, SECRET)
    try:
        await compiler.start()
        pinned = resolve(GrammarSpec(GrammarKind.LARK, 'start: "pinned"'), Limits(), compiler.fingerprint)
        assert isinstance(await compiler.compile(pinned.request(pinned=True)), Compiled)
        for index in range(20):
            await compiled(compiler, GrammarSpec(GrammarKind.LARK, f'start: "other {index}"'))
        answer = await compiler.compile(pinned.request())
        assert isinstance(answer, Compiled)
        assert answer.source == "memory"
    finally:
        await compiler.close()


@pytest.mark.parametrize("trouble", ["paused", "killed"])
async def test_redis_in_trouble_costs_no_answer_and_is_soon_left_alone(trouble: str, model_folder: Path, tmp_path: Path) -> None:
    with redis_process(tmp_path) as server:
        cache = TieredCache(MemoryCache(1 << 24), RedisCache(server.url, PASSWORD, "test", 50, 60, 1 << 24))
        compiler = GrammarCompiler(model_folder, 20.0, SandboxSettings(workers=1), cache, SECRET)
        try:
            await compiler.start()
            await compiled(compiler, GrammarSpec(GrammarKind.LARK, 'start: "before"'))
            server.pause() if trouble == "paused" else server.kill()
            for index in range(200):
                answer = await compiled(compiler, GrammarSpec(GrammarKind.LARK, f'start: "{trouble} {index}"'))
                assert answer.source == "compiled"
                counters = await compiler.counters()
                if counters["redis_server_skipped"]:
                    break
            # The breaker has opened: later requests do not wait for Redis at all.
            assert counters["redis_server_skipped"]
            assert counters["redis_server_timeouts"] + counters["redis_server_errors"] >= 3
        finally:
            await compiler.close()


async def test_nothing_waits_for_a_redis_that_hangs(model_folder: Path, tmp_path: Path) -> None:
    with redis_process(tmp_path) as server:
        cache = TieredCache(MemoryCache(1 << 24), RedisCache(server.url, PASSWORD, "test", 600_000, 60, 1 << 24))
        compiler = GrammarCompiler(model_folder, 20.0, SandboxSettings(workers=1), cache, SECRET)
        try:
            await compiler.start()
            server.pause()
            grammar = resolve(schema_spec({"type": "object", "properties": {"x": {"type": "integer"}}}), Limits(), compiler.fingerprint)
            answer = await compiler.compile(grammar.request())
            assert isinstance(answer, Compiled)
            assert answer.backend == "llguidance"
            assert (await compiled(compiler, GrammarSpec(GrammarKind.LARK, 'start: "no stopgap"'))).source == "compiled"
            source = GrammarSource(cache, compiler.compile, SECRET, compiler.fingerprint, Limits())
            assert await source.get(source.resolve(GrammarSpec(GrammarKind.REGEX, "a replica")))
            # Redis has been asked, and has not been given up yet.
            assert cache.counters()["misses"] == 0
        finally:
            server.kill()
            await compiler.close()


async def test_a_full_queue_is_busy(compiler: GrammarCompiler) -> None:
    specs = [GrammarSpec(GrammarKind.REGEX, f"queued{index}") for index in range(20)]
    children = [psutil.Process(pid) for pid in compiler._sandbox.pids]
    for child in children:
        child.suspend()
    compiling = [asyncio.ensure_future(compiler.compile(request_of(compiler, spec))) for spec in specs]
    await asyncio.wait(compiling, timeout=60, return_when=asyncio.FIRST_COMPLETED)
    for child in children:
        child.resume()
    answers = await asyncio.gather(*compiling)
    assert [answer for answer in answers if isinstance(answer, Refusal) and answer.code == "pool_busy"]
    assert [answer for answer in answers if isinstance(answer, Compiled)]


async def test_nobody_waits_behind_what_another_tenant_has_asked_for_before_the_same_grammar(model_folder: Path) -> None:
    settings = SandboxSettings(memory_limit_bytes=1 << 30, workers=1)
    compiler, done = GrammarCompiler(model_folder, 20.0, settings, TieredCache(MemoryCache(1 << 24), None), SECRET), list[str]()

    async def ask(text: str, tenant: str) -> None:
        assert isinstance(await compiler.compile(request_of(compiler, GrammarSpec(GrammarKind.REGEX, text), tenant=tenant)), Compiled)
        done.append(f"{tenant} {text}")

    try:
        await compiler.start()
        children = [psutil.Process(pid) for pid in compiler._sandbox.pids]
        for child in children:
            child.suspend()
        asked = [*((text, "flood") for text in ("one", "two", "three", "popular")), ("popular", "other")]
        asking = [asyncio.ensure_future(ask(*each)) for each in asked]
        end = time.monotonic() + PATIENCE_S
        while compiler._sandbox.waiting < len(asked) - 1:
            assert time.monotonic() < end
            await asyncio.sleep(TICK_S)
        for child in children:
            child.resume()
        await asyncio.gather(*asking)
        assert done.index("other popular") < done.index("flood two")
        assert (await compiler.counters())["compiled"] == len(asked) - 1
    finally:
        await compiler.close()


async def test_a_model_replica_reads_what_the_pool_wrote(compiler: GrammarCompiler, server: RedisProcess) -> None:
    source = GrammarSource(cache_of(server), compiler.compile, SECRET, compiler.fingerprint, Limits(), PATIENT_S)
    grammar = source.resolve(GrammarSpec(GrammarKind.REGEX, "read by a replica"))
    artifact = await source.get(grammar)
    assert await source.get(grammar) is artifact
    second = GrammarSource(cache_of(server), compiler.compile, SECRET, compiler.fingerprint, Limits(), PATIENT_S)
    assert await second.get(grammar) == artifact
    assert second.counters()["redis_hits"] == 1
    assert second.counters()["pool_calls"] == 0
    await source.close()
    await second.close()


async def test_many_requests_at_once_ask_redis_once(compiler: GrammarCompiler, server: RedisProcess) -> None:
    spec = GrammarSpec(GrammarKind.REGEX, "asked|once")
    answer = await compiled(compiler, spec)
    server.client.set(f"test:artifact:2:{answer.key}", answer.blob)
    source = GrammarSource(cache_of(server), compiler.compile, SECRET, compiler.fingerprint, Limits(), PATIENT_S)
    await asyncio.gather(*(source.get(source.resolve(spec)) for _ in range(20)))
    assert source.counters()["redis_server_hits"] == 1
    assert source.counters()["pool_calls"] == 0
    await source.close()


async def test_what_was_resolved_or_refused_once_needs_no_child_again(server: RedisProcess, model_folder: Path) -> None:
    compiler = compiler_of(server, model_folder)
    await compiler.start()
    good, bad = schema_spec({"type": "integer"}), schema_spec({"$ref": "https://example.org/elsewhere"})
    first = [await compiler.resolve(spec, "ada") for spec in (good, bad)]
    await compiler._sandbox.close()
    assert [await compiler.resolve(spec, "ada") for spec in (good, bad)] == first
    assert [type(answer) for answer in first] == [Resolution, Refusal]
    await compiler.close()
