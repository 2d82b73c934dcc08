"""A stage for Ray Data (2.60): the service answers each row's prompt, as an object of a pydantic model or as text.

answered = answer_rows(dataset, Person, actors=2, temperature=0, max_tokens=64)
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from pydantic import BaseModel
from ray import serve
from ray.data import ActorPoolStrategy, Dataset

from deployments.client.by_handle import HandleTransport
from deployments.client.client import Generation, request_body
from deployments.client.partial import validated
from deployments.client.transport import retry_wait_s
from deployments.errors import ApiError, OutputTruncated

TRIES = 8
"""Times that a row is sent, when the service is full or its ingress ends."""


def answer_rows(
    dataset: Dataset,
    model: type[BaseModel] | None = None,
    *,
    prompt: str = "prompt",
    answer: str = "answer",
    error: str = "error",
    actors: int = 1,
    application: str = "maskcast",
    **options: Any,
) -> Dataset:
    """The dataset with two more columns: `answer`, and `error`, which says why there is no answer. One of them is None. A row that fails
    fails alone, and no row is lost when one of the service's processes ends.

    `prompt`, `answer` and `error` name the columns. A prompt is a text, or a list of chat messages. `options`: those of
    `StructuredClient.generate`.

    Each actor sends 16 rows of a block at a time (`RAY_DATA_DEFAULT_ASYNC_ROW_UDF_MAX_CONCURRENCY`) and reserves no CPU. When the service
    is full, a row is sent again after `Retry-After`.
    """
    given = {**options, **({} if model is None else {"json": model.model_json_schema()})}
    return dataset.map(
        _AnswerStage,  # type: ignore[arg-type]  # Ray's annotation lacks asynchronous classes, its documentation has them
        fn_constructor_args=(model, _Columns(prompt, answer, error), application, given),
        compute=ActorPoolStrategy(size=actors),
        num_cpus=0,
    )


class _Columns(NamedTuple):
    prompt: str
    answer: str
    error: str


class _AnswerStage:
    def __init__(self, model: type[BaseModel] | None, columns: _Columns, application: str, options: dict[str, Any]) -> None:
        self._model, self._columns, self._options = model, columns, options
        self._transport = HandleTransport(serve.get_app_handle(application))

    async def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        answer, error = None, None
        try:
            answer = self._read(await self._generation(row[self._columns.prompt]))
        except (ApiError, OutputTruncated) as refused:
            error = f"{getattr(refused, 'code', 'truncated')}: {refused}"
        return {**row, self._columns.answer: answer, self._columns.error: error}

    async def _generation(self, prompt: Any) -> Generation:
        body = request_body(prompt if isinstance(prompt, str) else list(prompt), self._options)
        for left in reversed(range(TRIES)):
            try:
                return Generation.of(await self._transport.generate_async("chat", body))
            except ApiError as error:
                wait_s = retry_wait_s(error.status, error.retry_after_s)
                if wait_s is None or not left:
                    raise
            await asyncio.sleep(wait_s)
        raise AssertionError("the last one returns or raises")

    def _read(self, generation: Generation) -> Any:
        """JSON's types, of which Ray Data makes a column."""
        if self._model is None:
            return generation.text
        return validated(self._model, generation.text, generation.finish_reason).model_dump(mode="json")
