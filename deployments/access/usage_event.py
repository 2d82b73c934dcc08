"""Usage figures of streams whose clients did not ask for them: asked for, counted, and not handed on. With them goes `system_fingerprint`,
which vLLM 0.32 has in its last event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPTIONS, WANTED = "stream_options", "include_usage"
_NO_CHOICES, _USAGE = '"choices":[]', '"usage":{'
"""As the model replica writes the one event that tells the usage of a whole answer; in a text, their quotes would be escaped."""


def asking_for_usage(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The body of a stream that ends with its usage, and whether its client does not expect that. Options that are none stay as they are:
    the engine refuses them."""
    options = body.get(OPTIONS)
    asks = options is None or (isinstance(options, dict) and not options.get(WANTED))
    if body.get("stream") is not True or not asks:
        return body, False
    return {**body, OPTIONS: {**(options or {}), WANTED: True}}, True


def without_usage(events: str) -> str:
    """Whole events, without the one that tells the usage."""
    if _NO_CHOICES not in events or _USAGE not in events:
        return events
    kept = (event for event in events.split("\n\n") if not (_NO_CHOICES in event and _USAGE in event))
    return "\n\n".join(kept)
