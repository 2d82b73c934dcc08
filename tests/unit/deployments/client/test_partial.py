"""Objects that grow with their JSON."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel, ValidationError

from deployments.client.partial import GrowingAnswer
from deployments.errors import ApiError, OutputTruncated


class Place(BaseModel):
    city: str
    country: str | None = None


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Person(BaseModel):
    name: Annotated[str, Field(min_length=3)]
    born: date
    job: Literal["nurse", "cook"] = "nurse"
    home: Place | None
    places: dict[str, Place]
    tree: Tree
    either: Place | Tree
    mail_address: str = Field(alias="mail")


class Places(RootModel[list[Place]]):
    pass


WHOLE = (
    '{"name":"Ada","born":"2001-02-03","job":"cook","home":{"city":"Oslo","country":"Norway"},"places":{"work":{"city":"Rome"}},'
    '"tree":{"value":1,"children":[{"value":2}]},"either":{"city":"Bonn"},"mail":"ada@example.org"}'
)


def event(text: str, finish_reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": finish_reason}]}


def test_it_has_what_has_come_and_none_for_the_rest() -> None:
    answer = GrowingAnswer(Person)
    first = answer.add(event('{"name":"Ad'))
    assert isinstance(first, Person)
    assert dict(first) == {
        "name": "Ad",
        "born": None,
        "job": "nurse",
        "home": None,
        "places": None,
        "tree": None,
        "either": None,
        "mail_address": None,
    }
    then = answer.add(event('a","born":"2001-02-03","job":"cook","home":{"city":"Os'))
    assert then is not None
    assert isinstance(then.home, Place)
    assert (then.home.city, then.home.country) == ("Os", None)


def test_every_beginning_gives_an_instance_and_the_last_one_is_whole() -> None:
    answer = GrowingAnswer(Person)
    instances = [answer.add(event(letter)) for letter in WHOLE]
    assert all(isinstance(instance, Person) for instance in instances)
    last = instances[-1]
    assert last is not None
    assert isinstance(last.places["work"], Place)
    assert last.tree.children[0].value == 2
    assert last.mail_address == "ada@example.org"
    answer.add(event("", "stop"))
    assert answer.whole() == Person.model_validate_json(WHOLE)


def test_a_list_at_the_root_grows_by_its_items() -> None:
    answer = GrowingAnswer(Places)
    grown = answer.add(event('[{"city":"Oslo"},{"ci'))
    assert grown is not None
    assert [place.city for place in grown.root] == ["Oslo", None]


@pytest.mark.parametrize("told", [event(""), event("\n"), {"choices": []}, event("", "stop")])
def test_events_without_text_tell_nothing_new(told: dict[str, Any]) -> None:
    assert GrowingAnswer(Person).add(told) is None


def test_what_was_cut_and_what_fails_raise() -> None:
    answer = GrowingAnswer(Place)
    answer.add(event('{"city":"Os', "length"))
    with pytest.raises(OutputTruncated):
        answer.whole()
    with pytest.raises(ApiError, match="ended"):
        answer.add({"error": {"message": "the engine ended", "code": "engine_dead", "type": "service_unavailable_error"}})
    invalid = GrowingAnswer(Person)
    invalid.add(event('{"name":"A"}', "stop"))
    with pytest.raises(ValidationError):
        invalid.whole()
