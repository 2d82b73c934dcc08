"""What is asked, and how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from load_tests.corpus.families.tools import tools
from load_tests.load.arrivals import Rate
from load_tests.routing.traffic import MAX_TOKENS, popular
from tests.hostile_corpus import HOSTILE, request_field

Body = dict[str, Any]
POPULAR = popular(256)
LETTERS = 600
BURST, BURST_FROM, BURST_TO = 5.0, 0.4, 0.6
TOOL = "calendar_create"


@dataclass(frozen=True, slots=True)
class Scenario:
    """`body` makes the request of a number. Its arrivals are so many times as frequent as is usual, at most `peak` times."""

    name: str
    about: str
    body: Callable[[int, Random], Body]
    rate: Rate = lambda _: 1.0
    peak: float = 1.0


def _steady(number: int, _: Random) -> Body:
    return POPULAR[number % len(POPULAR)]


def _new_schema(number: int, random: Random) -> Body:
    """The name of a field makes the schema one that nobody has seen."""
    fields = {"city": {"type": "string", "maxLength": 20}, f"visitors_{random.randrange(10**9)}": {"type": "integer"}}
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    content = f"Extract {', '.join(fields)} as JSON.\n\nPorto had {number} visitors."
    return {"messages": [{"role": "user", "content": content}], "structured_outputs": {"json": schema}, "max_tokens": MAX_TOKENS}


def _hostile(number: int, random: Random) -> Body:
    """Every second one; the others are as usual, and should not notice."""
    if number % 2:
        return _steady(number, random)
    spec = random.choice(list(HOSTILE.values()))
    return {"messages": [{"role": "user", "content": "Go."}], "structured_outputs": request_field(spec), "max_tokens": 4}


def _long(number: int, _: Random) -> Body:
    constraint = {"regex": f"[a-z]{{{LETTERS},{2 * LETTERS}}}"}
    return {"messages": [{"role": "user", "content": "Go on."}], "structured_outputs": constraint, "max_tokens": LETTERS, "seed": number}


def _tools(number: int, _: Random) -> Body:
    tool = {"type": "function", "function": {"name": TOOL, "parameters": tools()["tool_arguments"]}}
    content = f"Put the meeting number {number} into the calendar."
    return {"messages": [{"role": "user", "content": content}], "tools": [tool], "tool_choice": "required", "max_tokens": 2 * MAX_TOKENS}


def _burst(share: float) -> float:
    return BURST if BURST_FROM <= share < BURST_TO else 1.0


SCENARIOS = (
    Scenario("steady", "schemas of which some are popular", _steady),
    Scenario("burst", f"the same, and {BURST:g} times as many of them for a fifth of the time", _steady, _burst, BURST),
    Scenario("many schemas", "each request brings a schema that nobody has seen", _new_schema),
    Scenario("hostile schemas", "every second constraint is made to hurt", _hostile),
    Scenario("long streams", f"{LETTERS} letters each, a quarter as many", _long, lambda _: 0.25),
    Scenario("tools", "calls of a tool with nested arguments, half as many", _tools, lambda _: 0.5),
)
