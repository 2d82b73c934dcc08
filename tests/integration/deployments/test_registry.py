"""Registering, looking up, listing and deleting named grammars, with a real Redis and real backends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import NamedGrammar
from deployments.errors import ApiError
from deployments.grammars.registry import MAX_LISTS, GrammarRegistry
from grammar_service.artifacts.cache import MemoryCache
from grammar_service.artifacts.cache.link import RedisLink
from grammar_service.backends import backend_named
from grammar_service.errors import PoolUnavailable
from grammar_service.limits import Limits
from grammar_service.messages import CompileRequest, Prepared
from grammar_service.registry import GrammarEntry, GrammarNames, RegistryStore, Room
from grammar_service.registry.store import RegistryCounters
from grammar_service.resolve import Resolution, resolve
from grammar_service.sandbox.background_thread import BackgroundThread
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess, redis_process
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

pytestmark = pytest.mark.asyncio
ROOM = Room(10)
PATIENT_MS = 10_000  # on a busy machine, this process itself may be late
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
PERSON = {"id": "person", "structured_outputs": {"json": SCHEMA}}
WORD = {"id": "word", "structured_outputs": {"regex": "[a-z]+"}}
OTHER_WORD = {"id": "word", "structured_outputs": {"regex": "[A-Z]+"}}


class OneProcessPool:
    """Compiles in this process, with the real backends, and pins in its own memory."""

    def __init__(self, tokenizer: GrammarTokenizer) -> None:
        self._tokenizer = tokenizer
        self.memory: MemoryCache[bytes] = MemoryCache(1 << 24)
        self.available = True

    async def prepare(self, request: CompileRequest) -> Prepared:
        if not self.available:
            raise PoolUnavailable("the pool is stopped")
        compiled = await asyncio.to_thread(backend_named(request.backend).compile, request.spec, self._tokenizer)
        self.memory.put(request.key, compiled.data)
        if request.pinned:
            self.memory.pin(request.key)
        return Prepared(request.key, request.backend)


@pytest.fixture(scope="module")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisProcess]:
    with redis_process(tmp_path) as process:
        yield process


@pytest.fixture
def pool(tokenizer: GrammarTokenizer) -> OneProcessPool:
    return OneProcessPool(tokenizer)


def store_of(server: RedisProcess, quick_url: str | None = None) -> RegistryStore:
    counters = RegistryCounters()
    quick, patient = (RedisLink(url, PASSWORD, PATIENT_MS, counters) for url in (quick_url or server.url, server.url))
    return RegistryStore(quick, counters, "test", b"secret", 1 << 16, patient)


def registry_of(
    pool: OneProcessPool,
    store: RegistryStore | None,
    fixed: Mapping[str, GrammarSpec] | None = None,
    room: Room = ROOM,
    rules: str = "rules",
    resolved: list[str] | None = None,
    names: GrammarNames | None = None,
) -> GrammarRegistry:
    """`resolved` gets the texts that had to be."""
    entries = {name: GrammarEntry(name, spec, 1) for name, spec in (fixed or {}).items()}

    async def resolving(spec: GrammarSpec, _: str) -> Resolution:
        if resolved is not None:
            resolved.append(spec.text)
        return resolve(spec, Limits(), "tiny")

    names = names or GrammarNames(entries, store)
    background = BackgroundThread()
    return GrammarRegistry(names, store, pool, resolving, rules, room, ConstraintDefaults(), lambda _: None, background, lambda: 7.5)


@pytest_asyncio.fixture
async def registry(server: RedisProcess, pool: OneProcessPool) -> AsyncIterator[GrammarRegistry]:
    registry = registry_of(pool, store_of(server), {"fixed": GrammarSpec(GrammarKind.REGEX, "fixed")})
    yield registry
    await registry.close()


async def refused(answer: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await answer
    return caught.value


async def test_a_registered_grammar_is_compiled_pinned_and_found(registry: GrammarRegistry, pool: OneProcessPool) -> None:
    grammar, is_new = await registry.register(PERSON)
    assert is_new
    assert {name: grammar[name] for name in ("object", "id", "created", "kind")} == {
        "object": "grammar",
        "id": "person",
        "created": 7,
        "kind": "json_schema",
    }
    assert pool.memory.pinned_bytes == len(pool.memory.get(grammar["key"]) or b"") > 0
    assert await registry.get("person") == grammar
    spec = await registry.spec(NamedGrammar("person", "structured_outputs.grammar_id"))
    assert spec.kind is GrammarKind.JSON_SCHEMA


async def test_a_redis_that_is_too_slow_for_requests_is_not_for_registering(server: RedisProcess, pool: OneProcessPool) -> None:
    registry = registry_of(pool, store_of(server, quick_url="redis://127.0.0.1:1"))
    _, is_new = await registry.register(WORD)
    assert is_new
    assert (await refused(registry.register(OTHER_WORD))).status == 409
    assert (await registry.delete("word"))["deleted"]
    await registry.close()


async def test_the_same_grammar_again_is_the_same_object(registry: GrammarRegistry) -> None:
    first, _ = await registry.register(PERSON)
    described = {"id": "person", "structured_outputs": {"json": {**SCHEMA, "description": "means the same"}}}
    assert await registry.register(described) == (first, False)


async def test_clients_that_register_the_same_at_once_get_the_same(registry: GrammarRegistry) -> None:
    answers = await asyncio.gather(*(registry.register(WORD) for _ in range(8)))
    assert len({str(grammar) for grammar, _ in answers}) == 1
    assert [is_new for _, is_new in answers].count(True) == 1


async def test_another_grammar_under_a_taken_name_is_a_conflict_unless_it_replaces(registry: GrammarRegistry, pool: OneProcessPool) -> None:
    first, _ = await registry.register(WORD)
    error = await refused(registry.register(OTHER_WORD))
    assert (error.status, error.code, error.param) == (409, "grammar_exists", "id")
    second, is_new = await registry.register({**OTHER_WORD, "replace": True})
    assert is_new
    assert second["key"] != first["key"]
    assert pool.memory.pinned_bytes == sum(len(pool.memory.get(grammar["key"]) or b"") for grammar in (first, second))


async def test_a_faulty_grammar_is_refused_as_in_a_request(registry: GrammarRegistry) -> None:
    error = await refused(registry.register({"id": "bad", "structured_outputs": {"json": {"type": "objec"}}}))
    assert (error.status, error.param) == (400, "structured_outputs.json#/type")
    error = await refused(registry.register({"id": "bad", "structured_outputs": {"grammar": "root ::= missing"}}))
    assert (error.status, error.param) == (400, "structured_outputs.grammar")
    assert (await refused(registry.get("bad"))).status == 404


async def test_a_pool_that_cannot_compile_now_registers_nothing(registry: GrammarRegistry, pool: OneProcessPool) -> None:
    pool.available = False
    assert (await refused(registry.register(WORD))).status == 503
    assert (await refused(registry.get("word"))).status == 404


async def test_names_of_the_settings_stay_as_they_are(registry: GrammarRegistry) -> None:
    for answer in (
        registry.register({"id": "fixed", "structured_outputs": {"regex": "other"}, "replace": True}),
        registry.delete("fixed"),
    ):
        error = await refused(answer)
        assert (error.status, error.code) == (409, "grammar_in_settings")
    grammar, is_new = await registry.register({"id": "fixed", "structured_outputs": {"regex": "fixed"}})
    assert (grammar, is_new) == (await registry.get("fixed"), False)


async def test_a_tenant_that_deletes_a_grammar_leaves_those_of_the_settings_pinned(registry: GrammarRegistry, pool: OneProcessPool) -> None:
    await registry.compile_ahead()
    pinned = pool.memory.pinned_bytes
    await registry.register({"id": "mine", "structured_outputs": {"regex": "fixed"}})
    await registry.delete("mine")
    assert pool.memory.pinned_bytes == pinned > 0


async def test_a_deleted_grammar_is_unknown(registry: GrammarRegistry) -> None:
    await registry.register(WORD)
    assert await registry.delete("word") == {"object": "grammar.deleted", "id": "word", "deleted": True}
    for answer in (registry.get("word"), registry.delete("word")):
        assert (await refused(answer)).status == 404
    error = await refused(registry.spec(NamedGrammar("word", "response_format.grammar_id")))
    assert (error.status, error.code, error.param) == (400, "grammar_not_found", "response_format.grammar_id")


async def test_all_are_listed(registry: GrammarRegistry) -> None:
    grammars = [(await registry.register(body))[0] for body in (PERSON, WORD)]
    listed = await registry.list_page()
    assert listed["object"] == "list"
    assert listed["data"] == [await registry.get("fixed"), *grammars]
    assert (listed["has_more"], listed["first_id"], listed["last_id"]) == (False, "fixed", "word")


async def test_they_are_listed_in_pages(registry: GrammarRegistry) -> None:
    for name in "abcde":
        await registry.register({**WORD, "id": name})
    pages, after = list[list[str]](), ""
    for _ in range(4):
        page = await registry.list_page(after, 2)
        pages.append([grammar["id"] for grammar in page["data"]])
        after = page["last_id"] or ""
    assert pages == [["fixed", "a"], ["b", "c"], ["d", "e"], []]
    assert await registry.list_page("e") == {"object": "list", "data": [], "has_more": False, "first_id": None, "last_id": None}
    assert [grammar["id"] for grammar in (await registry.list_page("bb"))["data"]] == ["c", "d", "e"], "a name that is gone"


class CountedNames(GrammarNames):
    """Knows how many lists have been read at a time."""

    lists = most = 0

    async def entries(self, tenant: str | None = None, after: str = "") -> AsyncGenerator[GrammarEntry, None]:
        self.lists += 1
        self.most = max(self.most, self.lists)
        async with aclosing(super().entries(tenant, after)) as entries:
            async for entry in entries:
                yield entry
        self.lists -= 1


async def test_few_lists_are_read_at_a_time(server: RedisProcess, pool: OneProcessPool) -> None:
    """Each reads megabytes, also for clients that have left."""
    store = store_of(server)
    names = CountedNames({}, store)
    registry = registry_of(pool, store, names=names)
    grammar, _ = await registry.register(WORD)
    pages = await asyncio.gather(*(registry.list_page() for _ in range(20)))
    assert [page["data"] for page in pages] == [[grammar]] * 20
    assert names.most <= MAX_LISTS
    await registry.close()


async def test_registrations_are_read_one_at_a_time(registry: GrammarRegistry) -> None:
    threads = set[str]()

    class Watched(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            threads.add(threading.current_thread().name)
            return super().get(key, default)

    await asyncio.gather(*(registry.register(Watched(WORD)) for _ in range(8)))
    assert len(threads) == 1


async def test_what_is_listed_is_not_resolved_again(registry: GrammarRegistry, server: RedisProcess, pool: OneProcessPool) -> None:
    grammars = [(await registry.register(body))[0] for body in (PERSON, WORD)]
    resolved = list[str]()
    fixed = {"fixed": GrammarSpec(GrammarKind.REGEX, "fixed")}
    other = registry_of(pool, store_of(server), fixed, resolved=resolved)
    for _ in range(2):
        assert (await other.list_page())["data"][1:] == grammars
        assert [await other.get("person"), await other.get("word")] == grammars
    assert resolved == ["fixed"], "the settings' own, once"
    await other.close()


async def test_what_was_resolved_by_other_rules_is_resolved_anew_and_once(
    registry: GrammarRegistry, server: RedisProcess, pool: OneProcessPool
) -> None:
    grammar, _ = await registry.register(WORD)
    resolved = list[str]()
    upgraded = registry_of(pool, store_of(server), rules="others", resolved=resolved)
    for _ in range(2):
        assert (await upgraded.list_page())["data"] == [grammar]
    assert resolved == ["[a-z]+"]
    assert (await upgraded.register(WORD)) == (grammar, False)
    await upgraded.close()


async def test_too_many_are_refused(server: RedisProcess, pool: OneProcessPool) -> None:
    registry = registry_of(pool, store_of(server), room=Room(1))
    await registry.register(WORD)
    error = await refused(registry.register(PERSON))
    assert (error.status, error.code) == (400, "too_many_grammars")
    assert (await registry.register({**OTHER_WORD, "replace": True}))[1]
    await registry.close()


async def test_another_tenant_neither_sees_nor_replaces_nor_deletes_a_grammar(registry: GrammarRegistry) -> None:
    mine, _ = await registry.register(WORD, "me")
    assert mine["tenant"] == "me"
    named = NamedGrammar("word", "structured_outputs.grammar_id")
    for answer in (registry.get("word", "you"), registry.delete("word", "you"), registry.get("word")):
        assert (await refused(answer)).status == 404
    assert (await refused(registry.spec(named, "you"))).code == "grammar_not_found"
    yours, is_new = await registry.register({**OTHER_WORD, "replace": True}, "you")
    assert is_new
    assert (await registry.spec(named, "me")).text == "[a-z]+"
    assert [grammar["id"] for grammar in (await registry.list_page(tenant="nobody"))["data"]] == ["fixed"]
    everybodys = await registry.list_page(tenant=None)
    assert everybodys["data"][1:] == [mine, yours]
    assert (everybodys["first_id"], everybodys["last_id"]) == (":fixed", "you:word")


async def test_everybodys_names_come_in_pages(registry: GrammarRegistry) -> None:
    """Of any size, each once, though tenants have the same names."""
    for tenant in ("me", "you", ""):
        for body in (WORD, PERSON):
            await registry.register(body, tenant)
    for size in (1, 2, 3, 5):
        found, after, has_more = list[tuple[str, str]](), "", True
        while has_more:
            page = await registry.list_page(after, size, None)
            found += [(grammar.get("tenant", ""), grammar["id"]) for grammar in page["data"]]
            after, has_more = page["last_id"], page["has_more"]
        assert found == [("", "fixed"), *((tenant, name) for tenant in ("", "me", "you") for name in ("person", "word"))]


async def test_bytes_are_bounded_as_names_are(server: RedisProcess, pool: OneProcessPool) -> None:
    registry = registry_of(pool, store_of(server), room=Room(10, tenant_bytes=300))
    await registry.register(WORD)
    error = await refused(registry.register({"id": "long", "structured_outputs": {"regex": "a" * 300}}))
    assert (error.status, error.code) == (400, "too_many_grammars")
    assert "max_registered_mib" in error.message
    await registry.close()


async def test_a_new_process_compiles_what_it_finds_ahead(
    registry: GrammarRegistry, server: RedisProcess, tokenizer: GrammarTokenizer
) -> None:
    grammar, _ = await registry.register(WORD)
    server.client.set("test:registry:2::damaged", b"rubbish")
    server.client.hset("test:registry:2:", "damaged", 7)
    fresh = OneProcessPool(tokenizer)
    fixed = {"fixed": GrammarSpec(GrammarKind.REGEX, "fixed"), "bad": GrammarSpec(GrammarKind.EBNF, "root ::= missing")}
    restarted = registry_of(fresh, store_of(server), fixed)
    await restarted.compile_ahead()
    assert fresh.memory.get(grammar["key"])
    counters = restarted.counters()
    assert (counters["compiled_ahead"], counters["not_compiled_ahead"], counters["damaged"]) == (2, 1, 1)
    assert len(fresh.memory) == 2
    await restarted.close()


async def test_while_redis_is_away_nothing_changes_and_known_names_work(registry: GrammarRegistry, server: RedisProcess) -> None:
    await registry.register(WORD)
    server.kill()
    assert (await registry.spec(NamedGrammar("word", "structured_outputs.grammar_id"))).text == "[a-z]+"
    assert (await registry.get("fixed"))["id"] == "fixed"
    for answer in (registry.register(PERSON), registry.delete("word"), registry.list_page(), registry.get("person")):
        error = await refused(answer)
        assert (error.status, error.code) == (503, "registry_unavailable")
    await registry.compile_ahead()
    assert registry.counters()["not_compiled_ahead"] == 1


async def test_a_damaged_entry_is_told_and_can_be_registered_again(registry: GrammarRegistry, server: RedisProcess) -> None:
    server.client.set("test:registry:2::word", b"rubbish")
    error = await refused(registry.spec(NamedGrammar("word", "structured_outputs.grammar_id")))
    assert (error.status, error.code) == (503, "grammar_damaged")
    assert (await registry.register(WORD))[1]
    assert (await registry.get("word"))["id"] == "word"


async def test_without_redis_only_the_settings_name_grammars(pool: OneProcessPool) -> None:
    registry = registry_of(pool, None, {"fixed": GrammarSpec(GrammarKind.REGEX, "fixed")})
    assert (await registry.spec(NamedGrammar("fixed", "structured_outputs.grammar_id"))).text == "fixed"
    for answer in (registry.register(WORD), registry.delete("word")):
        error = await refused(answer)
        assert (error.status, error.code) == (400, "registry_not_configured")
        assert "redis.url" in error.message
    assert [grammar["id"] for grammar in (await registry.list_page())["data"]] == ["fixed"]
    await registry.compile_ahead()
    assert registry.counters() == {"compiled_ahead": 1, "not_compiled_ahead": 0}
