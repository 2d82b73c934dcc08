"""What is asked: the everyday texts of `load_tests.real_model`, and two tasks whose answers repeat much of a long prompt."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from load_tests.real_model.tasks import CITIES, NAMES, NUMBERS, PRODUCTS, TASKS, Exercise, make_exercises

LONG, EDIT = "long extraction", "code edit"
ALL = (*TASKS, LONG, EDIT)
MOST_TOKENS = 256
ORDERS = 5
"""Of a long text."""
_CODE = """def {name}(orders):
    total = 0
    for order in orders:
        if order["city"] == "{city}" and order["count"] > {count}:
            total += order["count"] * order["price"]
    return total
"""


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
    item = _object({"name": "string", "product": "string", "quantity": "integer", "city": "string"})
    listed = {"type": "array", "items": item, "minItems": ORDERS, "maxItems": ORDERS}
    schema = {"type": "object", "properties": {"orders": listed}, "required": ["orders"], "additionalProperties": False}
    return Exercise("List these orders as JSON.\n\n" + "\n".join(lines), _asked(schema))


def _edit(draw: random.Random) -> Exercise:
    name, new = draw.sample(["sum_of", "value_for", "total_in", "worth_of"], 2)
    code = _CODE.format(name=name, city=draw.choice(CITIES), count=draw.randrange(2, 9))
    asked = f"Rename the function `{name}` to `{new}`, and answer with the whole code as JSON.\n\n{code}"
    return Exercise(asked, _asked(_object({"code": "string"})))


def _object(kinds: Mapping[str, str]) -> dict[str, Any]:
    properties = {name: {"type": kind, **({"maxLength": 400} if name == "code" else {})} for name, kind in kinds.items()}
    return {"type": "object", "properties": properties, "required": [*kinds], "additionalProperties": False}


def _asked(schema: Mapping[str, Any]) -> dict[str, Any]:
    form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}
    return {"response_format": form, "max_tokens": MOST_TOKENS}


_MAKERS: Mapping[str, Callable[[random.Random], Exercise]] = {LONG: _long, EDIT: _edit}
