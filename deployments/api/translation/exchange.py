"""One request and its answer, on the way through the gateway."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Protocol

import msgspec

from deployments.api.engine_errors import engine_error
from deployments.api.translation.values import Event, PlacedMessage, in_request
from deployments.errors import ApiError, translated
from grammar_service.errors import MaskcastError
from grammar_service.warning import ConstraintWarning
from model_service.replies import Head

Items = AsyncGenerator[Head | str, None]
Reserve = Callable[[bytes], None]
_DATA, _BETWEEN, _DONE = "data: ", "\n\n", "[DONE]"


def unbounded(_: bytes) -> None:
    """For whoever counts no memory."""


class Exchange:
    """A request in the gateway's own form, `body`. `size`: bytes that it was made of, with those that were read besides; 0: the request's.
    `warnings`: what of the request has no effect."""

    def __init__(self, body: Mapping[str, Any], warnings: Sequence[ConstraintWarning] = (), size: int = 0) -> None:
        self.body = body
        self.warnings = warnings
        self.size = size

    def answer(self, items: Items) -> Items:
        """The gateway's items as the client gets them. An error of the engine is an item here, and raised where it is translated."""
        return items

    def failed(self, error: ApiError) -> str:
        """The end of a stream that fails."""
        return f"{_DATA}{json.dumps(error.body())}{_BETWEEN}"


class AnswerFormat(Protocol):
    """Writes the answer to one request in the form of another API."""

    def whole(self, answer: Mapping[str, Any]) -> Mapping[str, Any]: ...

    def begin(self) -> Iterator[Event]: ...

    def of(self, chunk: Mapping[str, Any]) -> Iterator[Event]: ...

    def end(self) -> Iterator[Event]: ...

    def fail(self, error: ApiError) -> Iterator[Event]: ...


class TranslatedExchange(Exchange):
    """A request of another API, made a chat completion of these `messages` and `options`; `names` are its own for fields that have another
    one in a chat."""

    def __init__(
        self,
        options: Mapping[str, Any],
        messages: Sequence[PlacedMessage],
        names: Mapping[str, str],
        format_: AnswerFormat,
        warnings: Sequence[ConstraintWarning] = (),
        size: int = 0,
    ) -> None:
        super().__init__({**options, "messages": [message for _, message in messages]}, warnings, size)
        self._messages = messages
        self._names = names
        self._format = format_

    async def answer(self, items: Items) -> Items:
        async with aclosing(items):
            try:
                head = await anext(items)
                assert isinstance(head, Head)
                if head.status >= HTTPStatus.BAD_REQUEST:
                    raise engine_error(head.status, msgspec.json.decode(await _text_of(items)))
            except MaskcastError as error:
                raise in_request(translated(error), self._messages, self._names) from None
            yield head
            if head.stream:
                async for piece in self._stream(items):
                    yield piece
            else:
                whole = self._format.whole(msgspec.json.decode(await _text_of(items)))
                await self.ended()
                yield msgspec.json.encode(whole).decode()

    async def ended(self) -> None:
        """Called once, when all of an answer is there and nothing has told the client so yet."""

    def failed(self, error: ApiError) -> str:
        return _written(self._format.fail(error))

    async def _stream(self, items: Items) -> AsyncGenerator[str, None]:
        yield _written(self._format.begin())
        try:
            async for item in items:
                for event in _events(str(item)):
                    if event == _DONE:
                        continue
                    chunk = msgspec.json.decode(event)
                    if "error" in chunk:
                        yield self.failed(_error(chunk["error"]))
                        return
                    yield _written(self._format.of(chunk))
        except MaskcastError as error:
            yield self.failed(translated(error))
            return
        end = list(self._format.end())
        await self.ended()
        yield _written(end)


async def _text_of(items: Items) -> str:
    return "".join([str(item) async for item in items])


def _error(told: Mapping[str, Any]) -> ApiError:
    return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, told["message"], code=told["code"], kind=told["type"])


def _events(text: str) -> Iterator[str]:
    """The data of each of some whole events."""
    return (event.removeprefix(_DATA) for event in text.split(_BETWEEN) if event)


def _written(events: Iterable[Event]) -> str:
    return "".join([f"event: {event['type']}\ndata: {msgspec.json.encode(event).decode()}\n\n" for event in events])
