"""What is asked: the everyday texts of `load_tests.real_model`, and two tasks whose answers repeat much of a long prompt."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from load_tests.real_model.tasks import CITIES, NAMES, NUMBERS, PRODUCTS, TASKS, Exercise, make_exercises

LONG, EDIT = "long extraction", "code edit"
ALL = (*TASKS, LONG, EDIT)
MOST_TOKENS = 256
ORDERS = 5
"""Of a long text."""
_CODE = """def {name}({things}):
    {total} = {begin}
    for {thing} in {things}:
        if {thing}.{size} > {least}:
            {total} += {thing}.{size} * {factor}
    return {total}"""
_THINGS = (
    ("orders", "order", "count", "total"),
    ("boxes", "box", "height", "weight"),
    ("rooms", "room", "width", "area"),
    ("trips", "trip", "distance", "length"),
    ("shelves", "shelf", "depth", "books"),
)
_LINES = len(_CODE.splitlines())
_FUNCTIONS = ("sum_of", "value_for", "total_in", "worth_of", "measure", "result")


def make(task: str, count: int) -> list[Exercise]:
    """The same at every call. Raises UnknownTask."""
    if task not in _MAKERS:
        return make_exercises(task, count)
    draw = random.Random(f"{task} 43")
    return [_MAKERS[task](draw) for _ in range(count)]


def _long(draw: random.Random) -> Exercise:
    people = draw.sample(NAMES, ORDERS)
    orders = [(name, draw.choice(list(NUMBERS)), draw.choice(PRODUCTS), draw.choice(CITIES)) for name in people]
    lines = [f"- {name} ordered {count} {product}, to be sent to {city}." for name, count, product, city in orders]
    members = {"name": "string", "product": "string", "quantity": "integer", "city": "string"}
    item = _object({name: {"type": kind} for name, kind in members.items()})
    listed = {"type": "array", "items": item, "minItems": ORDERS, "maxItems": ORDERS}
    schema = _object({"orders": listed})
    return Exercise("List these orders as JSON.\n\n" + "\n".join(lines), _asked(schema))


def _edit(draw: random.Random) -> Exercise:
    """With an example ahead of it: without one a small model says anything, and answers have the lengths that chance gives them."""
    examples = [_renaming(draw, *place) for place in zip(draw.sample(_THINGS, 2), _in_pairs(draw.sample(_FUNCTIONS, 4)), strict=True)]
    (asked, answer), (question, _) = examples
    messages = [_turn("user", asked), _turn("assistant", answer), _turn("user", question)]
    lines = {"type": "array", "items": {"type": "string", "maxLength": 80}, "minItems": _LINES, "maxItems": _LINES}
    return Exercise(question, {**_asked(_object({"lines": lines})), "messages": messages})


def _renaming(draw: random.Random, words: Sequence[str], names: Sequence[str]) -> tuple[str, str]:
    """What is asked, and the answer."""
    numbers = {"begin": draw.randrange(9), "least": draw.randrange(9), "factor": draw.randrange(2, 9)}
    code = _CODE.format(name=names[0], **dict(zip(("things", "thing", "size", "total"), words, strict=True)), **numbers)
    asked = f"Rename the function `{names[0]}` to `{names[1]}`, and answer with the lines of the whole code as JSON.\n\n{code}\n"
    return asked, json.dumps({"lines": code.replace(names[0], names[1]).splitlines()})


def _in_pairs(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[:2], names[2:]]


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _asked(schema: Mapping[str, Any]) -> dict[str, Any]:
    form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}
    return {"response_format": form, "max_tokens": MOST_TOKENS}


_MAKERS: Mapping[str, Callable[[random.Random], Exercise]] = {LONG: _long, EDIT: _edit}
