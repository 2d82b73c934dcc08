"""Texts of everyday, made from templates and lists that no model was trained on, with what is to be found in them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator

from load_tests.errors import UnknownTask

EXTRACTION, CLASSIFICATION, SUMMARY, TOOL, FREE = TASKS = ("extraction", "classification", "summary", "tool call", "free")
FREE_TOKENS = 64
MOST_TOKENS = 128

NAMES = (
    "Priya Nair,Tomás Rivera,Ingrid Solheim,Kwame Mensah,Yuki Tanaka,Leila Haddad,Marek Novotny,Aoife Byrne,Carlos Pinto,Hanna Weiss"
).split(",")
PRODUCTS = "blue mugs,desk lamps,garden chairs,wool blankets,bread knives,rain jackets,picture frames,bicycle bells".split(",")
CITIES = "Leeds,Porto,Utrecht,Graz,Malmö,Ghent,Bologna,Cork".split(",")
PLACES = "the Olive Branch,Café Central,Sushi Mori,the Old Mill,Trattoria Lucia,the Green Door".split(",")
DAYS = "Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday".split(",")
NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight"}


@dataclass(frozen=True, slots=True)
class Exercise:
    """What is asked, and the fields that a right answer has; of a summary or a free text nothing is right."""

    content: str
    request: Mapping[str, Any]
    expected: Mapping[str, Any] = field(default_factory=dict)


def make_exercises(task: str, count: int, seed: int = 39) -> list[Exercise]:
    """The same for the same seed. Raises UnknownTask."""
    if task not in _MAKERS:
        raise UnknownTask(f"there is no {task!r}; there are {', '.join(TASKS)}")
    draw = random.Random(f"{task} {seed}")
    return [_MAKERS[task](draw) for _ in range(count)]


def chat_body(exercise: Exercise, model: str) -> dict[str, Any]:
    """As an OpenAI client sends it, to either server."""
    messages = [{"role": "user", "content": exercise.content}]
    return {"model": model, "messages": messages, "temperature": 0, "max_tokens": MOST_TOKENS, **exercise.request}


def fields_right(exercise: Exercise, text: str) -> int:
    """How many of the expected ones an answer has, but for case, blanks and the full stop at a text's end."""
    try:
        found = json.loads(text)
    except ValueError:
        return 0
    if not isinstance(found, dict):
        return 0
    return sum(_plain(found.get(name)) == _plain(value) for name, value in exercise.expected.items())


def is_valid(exercise: Exercise, text: str) -> bool:
    """Whether it is what the request asks for; a free text always is."""
    schema = _schema(exercise.request)
    if schema is None:
        return True
    try:
        return bool(Draft202012Validator(schema).is_valid(json.loads(text)))
    except ValueError:
        return False


def _schema(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = None
    if "response_format" in request:
        found = request["response_format"]["json_schema"]["schema"]
    elif "tools" in request:
        found = request["tools"][0]["function"]["parameters"]
    return found


def _plain(value: object) -> object:
    return value.strip().rstrip(".").casefold() if isinstance(value, str) else value


def _extraction(draw: random.Random) -> Exercise:
    name, product, city, number = draw.choice(NAMES), draw.choice(PRODUCTS), draw.choice(CITIES), draw.choice(list(NUMBERS))
    shown = draw.choice([str(number), NUMBERS[number]])
    text = draw.choice(
        [
            f"Hello, my name is {name} and I live in {city}. Last week I ordered {shown} {product}, but the parcel has not come yet.",
            f"Order note: {shown} {product} for {name}. Please deliver to {city} before the weekend.",
            f"Dear team, thank you for the {shown} {product}. They look lovely in our flat in {city}. Kind regards, {name}",
            f"{name} from {city} called this morning. One of the {shown} {product} arrived broken and has to be replaced.",
        ]
    )
    wanted = {"name": name, "product": product, "quantity": number, "city": city}
    asked = f"Extract the customer's name, the product, the quantity and the city as JSON.\n\n{text}"
    return Exercise(asked, _json(name="string", product="string", quantity="integer", city="string"), wanted)


def _classification(draw: random.Random) -> Exercise:
    product = draw.choice(PRODUCTS)
    subject = draw.choice(["delivery", "quality", "price"])
    is_good = draw.random() < 0.5
    good = {
        "delivery": "The parcel was here the very next day, and the driver was friendly.",
        "quality": f"The {product} are very well made. I have used them for a year and they still look new.",
        "price": f"The {product} cost half of what I paid elsewhere. What a bargain!",
    }
    bad = {
        "delivery": "I have waited five weeks for the parcel, and nobody can tell me where it is.",
        "quality": f"The {product} broke after two days. Cheap material and sloppy work.",
        "price": f"Far too expensive. I found the same {product} for a third of the money.",
    }
    ending = draw.choice(["I will order again.", "I recommend this shop."] if is_good else ["Never again.", "I am very disappointed."])
    asked = f"Classify this review.\n\n{(good if is_good else bad)[subject]} {ending}"
    enums = {"sentiment": ["positive", "negative"], "subject": ["delivery", "quality", "price"], "would_buy_again": [True, False]}
    schema = _object({name: {"enum": values} for name, values in enums.items()})
    wanted = {"sentiment": "positive" if is_good else "negative", "subject": subject, "would_buy_again": is_good}
    return Exercise(asked, _response_format(schema), wanted)


def _summary(draw: random.Random) -> Exercise:
    city, product, day, other = draw.choice(CITIES), draw.choice(PRODUCTS), draw.choice(DAYS), draw.choice(CITIES)
    text = (
        f"A small workshop in {city} that makes {product} has had to close its doors on {day} after forty years. The owner, "
        f"{draw.choice(NAMES)}, says that rents in the old town have doubled since 2019, and that fewer visitors come from {other}. "
        f"Neighbours have collected {draw.randrange(2, 9)},000 euros to help. Two former apprentices want to go on in a smaller shop near "
        "the station."
    )
    schema = _object({"title": {"type": "string", "maxLength": 60}, "summary": {"type": "string", "maxLength": 200}})
    return Exercise(f"Give this news a title, and sum it up in one sentence.\n\n{text}", _response_format(schema))


def _tool(draw: random.Random) -> Exercise:
    place, day, people, hour = draw.choice(PLACES), draw.choice(DAYS), draw.choice(list(NUMBERS)), draw.randrange(17, 22)
    name = draw.choice(NAMES)
    asked = draw.choice(
        [
            f"Please book a table for {people} at {place} on {day} at {hour}:00. The name is {name}.",
            f"This is {name}. On {day} {NUMBERS[people]} of us want to eat at {place}, at {hour}:00. Can you book that?",
        ]
    )
    properties = {
        "restaurant": {"type": "string"},
        "people": {"type": "integer"},
        "day": {"enum": DAYS},
        "time": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"},
        "name": {"type": "string"},
    }
    function = {"name": "book_table", "description": "Book a table at a restaurant.", "strict": True, "parameters": _object(properties)}
    request = {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "book_table"}},
    }
    return Exercise(asked, request, {"restaurant": place, "people": people, "day": day, "time": f"{hour}:00", "name": name})


def _free(draw: random.Random) -> Exercise:
    asked = f"What should somebody know who visits {draw.choice(CITIES)} on a {draw.choice(DAYS)} and likes {draw.choice(PRODUCTS)}?"
    return Exercise(asked, {"max_tokens": FREE_TOKENS, "min_tokens": FREE_TOKENS, "ignore_eos": True})


def _json(**kinds: str) -> dict[str, Any]:
    return _response_format(_object({name: {"type": kind} for name, kind in kinds.items()}))


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}}


_MAKERS: Mapping[str, Callable[[random.Random], Exercise]] = {
    EXTRACTION: _extraction,
    CLASSIFICATION: _classification,
    SUMMARY: _summary,
    TOOL: _tool,
    FREE: _free,
}


def names_of(given: str, of: Sequence[str]) -> list[str]:
    """Of a comma-separated list. Raises UnknownTask."""
    names = given.split(",")
    if unknown := [name for name in names if name not in of]:
        raise UnknownTask(f"there is no {unknown[0]!r}; there are {', '.join(of)}")
    return names
