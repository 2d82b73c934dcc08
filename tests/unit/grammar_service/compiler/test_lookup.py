from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from grammar_service.artifacts.artifact import AuthenticArtifact
from grammar_service.artifacts.cache import Found, MemoryCache, TieredCache
from grammar_service.artifacts.seal import Seal
from grammar_service.backends import CompiledPayload
from grammar_service.compiler.background import BackgroundTasks
from grammar_service.compiler.lookup import Lookup, found_or_made
from grammar_service.errors import CompileTimeout, InvalidGrammar
from grammar_service.messages import CompileRequest
from grammar_service.spec import GrammarKind, GrammarSpec

pytestmark = pytest.mark.asyncio
AT_ONCE = 0.0
PATIENT_S = 60.0
REQUEST = CompileRequest(GrammarSpec(GrammarKind.REGEX, "a"), "k", "xgrammar")
SEAL = Seal(b"s", "f")


def artifact() -> AuthenticArtifact:
    return SEAL.artifact(REQUEST, CompiledPayload(b"payload"))


class Work:
    """Makes an artifact, or fails, when it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun, self.finish = asyncio.Event(), asyncio.Event()
        self.calls = 0
        self._error = error

    async def __call__(self) -> AuthenticArtifact:
        self.calls += 1
        self.begun.set()
        await self.finish.wait()
        if self._error is not None:
            raise self._error
        return artifact()


async def told(answer: asyncio.Future[str | None]) -> str | None:
    return await answer


async def made(result: asyncio.Future[str]) -> str:
    return await result


def making(background: BackgroundTasks, result: asyncio.Future[str], begun: asyncio.Event) -> Callable[[], asyncio.Task[str]]:
    def make() -> asyncio.Task[str]:
        begun.set()
        return background.start(made(result))

    return make


async def test_what_is_found_in_time_is_not_made() -> None:
    background, answer, begun = BackgroundTasks(), asyncio.Future[str | None](), asyncio.Event()
    answer.set_result("found")
    assert await found_or_made(lambda: background.start(told(answer)), making(background, asyncio.Future(), begun), PATIENT_S) == "found"
    assert not begun.is_set()


async def test_what_is_not_there_is_made() -> None:
    background, answer, result = BackgroundTasks(), asyncio.Future[str | None](), asyncio.Future[str]()
    answer.set_result(None)
    result.set_result("made")
    assert await found_or_made(lambda: background.start(told(answer)), making(background, result, asyncio.Event()), PATIENT_S) == "made"


async def test_a_cache_that_does_not_answer_is_not_waited_for_but_left_to_find_out() -> None:
    background, answer, result = BackgroundTasks(), asyncio.Future[str | None](), asyncio.Future[str]()
    result.set_result("made")
    finding = background.start(told(answer))
    assert await found_or_made(lambda: finding, making(background, result, asyncio.Event()), AT_ONCE) == "made"
    assert not finding.done()
    answer.set_result(None)
    await background.close()
    assert finding.done()


async def test_a_late_answer_that_comes_before_the_work_is_done_is_taken() -> None:
    background, answer, result, begun = BackgroundTasks(), asyncio.Future[str | None](), asyncio.Future[str](), asyncio.Event()
    waiting = asyncio.create_task(found_or_made(lambda: background.start(told(answer)), making(background, result, begun), AT_ONCE))
    await begun.wait()
    answer.set_result("found late")
    assert await waiting == "found late"
    result.set_result("made in vain")
    await background.close()


async def test_what_is_found_goes_before_a_failure_to_make_it() -> None:
    background, answer, result, begun = BackgroundTasks(), asyncio.Future[str | None](), asyncio.Future[str](), asyncio.Event()
    result.set_exception(ValueError("the pool is busy"))
    waiting = asyncio.create_task(found_or_made(lambda: background.start(told(answer)), making(background, result, begun), AT_ONCE))
    await begun.wait()
    answer.set_result("found late")
    assert await waiting == "found late"


async def test_a_failure_to_make_what_is_not_there_is_raised() -> None:
    background, answer, result = BackgroundTasks(), asyncio.Future[str | None](), asyncio.Future[str]()
    answer.set_result(None)
    result.set_exception(ValueError("the pool is busy"))
    with pytest.raises(ValueError, match="busy"):
        await found_or_made(lambda: background.start(told(answer)), making(background, result, asyncio.Event()), PATIENT_S)


async def test_what_memory_holds_is_not_looked_at_again() -> None:
    cache = TieredCache(MemoryCache(10_000), None)
    # Nothing would be authentic under this secret.
    lookup, held = Lookup(cache, Seal(b"another", "f"), PATIENT_S), artifact()
    cache.keep(held)
    found = await lookup.get("k", Work())
    assert found.artifact is held
    assert found.source == "memory"


async def test_a_refusal_in_memory_is_raised_each_time_and_counted() -> None:
    cache = TieredCache(MemoryCache(10_000), None)
    lookup = Lookup(cache, SEAL, PATIENT_S)
    cache.keep(SEAL.refusal(REQUEST, InvalidGrammar("never", "/a")))
    for _ in range(2):
        with pytest.raises(InvalidGrammar, match="never"):
            await lookup.get("k", Work())
    assert lookup.remembered == 2


async def test_a_key_is_made_once_though_whoever_began_it_has_left() -> None:
    lookup, work = Lookup(TieredCache(MemoryCache(10_000), None), SEAL, PATIENT_S), Work()
    first, second = (asyncio.create_task(lookup.get("k", work)) for _ in range(2))
    await work.begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    work.finish.set()
    assert await second == Found((await second).artifact, "compiled")
    assert work.calls == 1
    await lookup.close()


async def test_whoever_joined_a_flight_that_ended_too_soon_has_one_of_its_own() -> None:
    lookup = Lookup(TieredCache(MemoryCache(10_000), None), SEAL, PATIENT_S)
    hasty, patient = Work(CompileTimeout("too long")), Work()
    patient.finish.set()
    began = asyncio.create_task(lookup.get("k", hasty, again_after=(CompileTimeout,)))
    await hasty.begun.wait()
    joined = asyncio.create_task(lookup.make("k", patient, again_after=(CompileTimeout,)))
    unasking = asyncio.create_task(lookup.make("k", patient))
    await asyncio.wait((joined, unasking), timeout=0)
    hasty.finish.set()
    for task in (began, unasking):
        with pytest.raises(CompileTimeout):
            await task
    assert (await joined).source == "compiled"
    assert (hasty.calls, patient.calls) == (1, 1)
    await lookup.close()


async def test_closing_ends_what_is_being_made() -> None:
    lookup, work = Lookup(TieredCache(MemoryCache(10_000), None), SEAL, PATIENT_S), Work()
    waiting = asyncio.create_task(lookup.get("k", work))
    await work.begun.wait()
    await lookup.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
