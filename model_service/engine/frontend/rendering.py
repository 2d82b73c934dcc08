"""From a request to its prompt's tokens, at once where that is short work (vLLM 0.32: `renderers/base.BaseRenderer`)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from vllm.renderers import BaseRenderer, ChatParams
from vllm.renderers.chat_utils import ChatTemplateResolutionError

from grammar_service.sandbox.turns import FairTurns

SHORT = 4096
"""Characters: about a millisecond and a half, where the detours that it saves took 25 ms beside 32 streams."""

CURRENT_TENANT: ContextVar[str] = ContextVar("the tenant of the request that is rendered", default="")
CONCURRENT_MEDIA_REQUESTS = 2
"""Sixteen images of 16 Mi pixels take 1.5 GiB, and 2.5 GiB while they are decoded (measured, WebP with transparency)."""
MOST_WAITING = 1 << 16
"""Never reached: a replica has fewer requests."""
T = TypeVar("T")
MEDIA_TYPES = frozenset({"image_url", "image_embeds", "prompt_embeds"})
NO_CHAT_TEMPLATE = (
    "the model has no chat template: send a prompt to /v1/completions, or have it served with `--chat-template FILE` "
    "(`model.engine_args.chat_template`)"
)


def quiet_argument_warnings() -> None:
    """Drop vLLM's warning about tool call arguments that are not a JSON object: one request of 90 KB causes 2,000 of them."""
    logging.getLogger("vllm.renderers.chat_utils").addFilter(lambda record: not str(record.msg).startswith("Tool call %r"))


def render_short_prompts_at_once(renderer: BaseRenderer) -> None:
    """vLLM renders and tokenizes in another thread, and comes back to its event loop six times on the way; beside busy streams each time
    takes as long as a step's pieces do. Long prompts, and media that have to be fetched, still go that way: they would hold up the loop.
    There, tenants take turns. vLLM has one thread, whose queue knows no tenants and fails chats that have waited for 30 s; a text of 2 MiB
    takes a second of it.

    Templates are the operator's: requests with one of their own are refused by the ingress.
    """
    chat_in_thread, completion_in_thread = renderer.render_chat_async, renderer.render_cmpl_async
    media_turns = FairTurns(range(CONCURRENT_MEDIA_REQUESTS), MOST_WAITING, time.monotonic)
    text_turns = FairTurns(range(1), MOST_WAITING, time.monotonic)

    async def render_chat(conversations: Sequence[Any], params: ChatParams, *arguments: Any, **options: Any) -> Any:
        try:
            if is_short_chat(conversations, params.chat_template_kwargs):
                return renderer.render_chat(conversations, params, *arguments, **options)
            turns = text_turns if part_types(conversations).isdisjoint(MEDIA_TYPES) else media_turns
            return await _render_in_turn(turns, partial(chat_in_thread, conversations, params, *arguments, **options))
        except ChatTemplateResolutionError as error:
            raise ChatTemplateResolutionError(NO_CHAT_TEMPLATE) from error

    async def render_completion(prompts: Sequence[Any], *arguments: Any, **options: Any) -> Any:
        if is_short(prompts):
            return renderer.render_cmpl(prompts, *arguments, **options)
        return await _render_in_turn(text_turns, partial(completion_in_thread, prompts, *arguments, **options))

    renderer.render_chat_async, renderer.render_cmpl_async = render_chat, render_completion


async def _render_in_turn(turns: FairTurns[int], render: Callable[[], Awaitable[T]]) -> T:
    """The turn lasts until the rendering has ended, also where the client disconnects: vLLM's thread goes on with it."""
    async with turns.turn(CURRENT_TENANT.get()):
        rendering = asyncio.ensure_future(render())
        try:
            return await asyncio.shield(rendering)
        finally:
            await asyncio.wait([rendering])


def part_types(conversations: Sequence[Sequence[dict[str, Any]]]) -> set[str]:
    """The types of all content parts. Replaces lazy iterators, which pydantic leaves for `content`, by lists."""
    found = set[str]()
    for message in chain.from_iterable(conversations):
        if not isinstance(content := message.get("content"), str | None):
            parts = message["content"] = list(content)
            found.update(str(part.get("type")) if isinstance(part, Mapping) else "text" for part in parts)
    return found


def is_short_chat(conversations: Sequence[Sequence[dict[str, Any]]], template_arguments: Mapping[str, Any]) -> bool:
    """Whether messages are texts, and they and all else that a template may show have few characters."""
    return part_types(conversations) <= {"text"} and is_short([conversations, template_arguments])


def is_short(value: Any) -> bool:
    return _left(value, SHORT) >= 0


def _left(value: Any, room: int) -> int:
    """What is left of `room`, in characters, behind all that is in the value; below 0: it is too long, or nothing says how long it is."""
    if isinstance(value, str):
        return room - len(value)
    if isinstance(value, Mapping):
        return _left(list(value.values()), _left(list(value), room))
    if isinstance(value, list | tuple):
        for item in value:
            if (room := _left(item, room - 1)) < 0:
                break
        return room
    return room if value is None or isinstance(value, int | float) else -1
