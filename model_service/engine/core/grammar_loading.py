"""The threads in which an engine core loads grammars (vLLM 0.32: `v1/structured_output/__init__.py`)."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

from vllm.v1.request import Request

from model_service.messages import TENANT_ARGUMENT


def tenant_of(request: Request) -> str:
    """Empty where nobody has told."""
    params = request.sampling_params
    return str((params.extra_args or {}).get(TENANT_ARGUMENT, "")) if params is not None else ""


class GrammarLoader(Executor):
    """In place of vLLM's pool, in which a tenant whose grammars take seconds would be ahead of all others: here they take turns. What is
    wanted for a request that has ended is not made."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, "grammars")
        self._waiting: OrderedDict[str, deque[tuple[Future[Any], Callable[[Request], Any], Request]]] = OrderedDict()
        self._lock = Lock()

    def submit(self, make: Callable[[Request], Any], request: Request) -> Future[Any]:  # type: ignore[override]  # as vLLM calls it
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.setdefault(tenant_of(request), deque()).append((future, make, request))
        self._threads.submit(self._make_next)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait, cancel_futures=cancel_futures)

    def _make_next(self) -> None:
        with self._lock:
            tenant, waiting = self._waiting.popitem(last=False)
            future, make, request = waiting.popleft()
            if waiting:
                self._waiting[tenant] = waiting  # behind all others
        if request.is_finished():
            future.cancel()
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(make(request))
        except BaseException as error:  # noqa: BLE001  # whoever waits for the grammar is told; a panic of native code is no Exception
            future.set_exception(error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}"))
