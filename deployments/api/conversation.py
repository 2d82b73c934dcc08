"""The messages of a chat request, as far as they are looked at before the engine writes its prompt of them."""

from __future__ import annotations

from typing import Any

from deployments.errors import bad_request

ROLES = ("developer", "system", "user", "assistant", "tool", "function")
"""Those of OpenAI's API. Chat templates pass over others in silence, or give them to the model as they are."""


def check_messages(messages: Any) -> None:
    """Raises ApiError, which names the message at fault."""
    if not isinstance(messages, list) or not messages:
        raise bad_request("'messages' must be an array of at least one message.", "messages")
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        if not isinstance(message, dict):
            raise bad_request(f"'{place}' must be an object with a 'role'.", place)
        if message.get("role") not in ROLES:
            raise bad_request(f"'{place}.role' must be one of: {', '.join(map(repr, ROLES))}.", f"{place}.role")
