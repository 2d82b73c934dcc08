from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from grammar_service.behind import Behind
from grammar_service.head_start import found_or_made

pytestmark = pytest.mark.asyncio
AT_ONCE = 0.0
PATIENT_S = 60.0


async def told(answer: asyncio.Future[str | None]) -> str | None:
    return await answer


async def made(result: asyncio.Future[str]) -> str:
    return await result


def making(behind: Behind, result: asyncio.Future[str], begun: asyncio.Event) -> Callable[[], asyncio.Task[str]]:
    def make() -> asyncio.Task[str]:
        begun.set()
        return behind.go_on(made(result))

    return make


async def test_what_is_found_in_time_is_not_made() -> None:
    behind, answer, begun = Behind(), asyncio.Future[str | None](), asyncio.Event()
    answer.set_result("found")
    assert await found_or_made(lambda: behind.go_on(told(answer)), making(behind, asyncio.Future(), begun), PATIENT_S) == "found"
    assert not begun.is_set()


async def test_what_is_not_there_is_made() -> None:
    behind, answer, result = Behind(), asyncio.Future[str | None](), asyncio.Future[str]()
    answer.set_result(None)
    result.set_result("made")
    assert await found_or_made(lambda: behind.go_on(told(answer)), making(behind, result, asyncio.Event()), PATIENT_S) == "made"


async def test_a_cache_that_does_not_answer_is_not_waited_for_but_left_to_find_out() -> None:
    behind, answer, result = Behind(), asyncio.Future[str | None](), asyncio.Future[str]()
    result.set_result("made")
    finding = behind.go_on(told(answer))
    assert await found_or_made(lambda: finding, making(behind, result, asyncio.Event()), AT_ONCE) == "made"
    assert not finding.done()
    answer.set_result(None)
    await behind.close()
    assert finding.done()


async def test_a_late_answer_that_comes_before_the_work_is_done_is_taken() -> None:
    behind, answer, result, begun = Behind(), asyncio.Future[str | None](), asyncio.Future[str](), asyncio.Event()
    waiting = asyncio.create_task(found_or_made(lambda: behind.go_on(told(answer)), making(behind, result, begun), AT_ONCE))
    await begun.wait()
    answer.set_result("found late")
    assert await waiting == "found late"
    result.set_result("made in vain")
    await behind.close()


async def test_what_is_found_goes_before_a_failure_to_make_it() -> None:
    behind, answer, result, begun = Behind(), asyncio.Future[str | None](), asyncio.Future[str](), asyncio.Event()
    result.set_exception(ValueError("the pool is busy"))
    waiting = asyncio.create_task(found_or_made(lambda: behind.go_on(told(answer)), making(behind, result, begun), AT_ONCE))
    await begun.wait()
    answer.set_result("found late")
    assert await waiting == "found late"


async def test_a_failure_to_make_what_is_not_there_is_raised() -> None:
    behind, answer, result = Behind(), asyncio.Future[str | None](), asyncio.Future[str]()
    answer.set_result(None)
    result.set_exception(ValueError("the pool is busy"))
    with pytest.raises(ValueError, match="busy"):
        await found_or_made(lambda: behind.go_on(told(answer)), making(behind, result, asyncio.Event()), PATIENT_S)
