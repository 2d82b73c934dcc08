"""An error of vLLM's front end names the field of the request that it is about."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from model_service.engine.frontend.refused_fields import MOST_FAULTS, first_fault, refused_field, refused_images
from model_service.messages import Endpoint

BODY = {"messages": [], "n": 0, "logprobs": True, "top_logprobs": 300, "presence_penalty": 9}


class Body(BaseModel):
    max_tokens: int = 1
    messages: list[dict[str, str] | list[str]] = []
    stop: str | list[str] = ""


def fault(**fields: object) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Body.model_validate(fields)
    return caught.value


@pytest.mark.parametrize(
    ("named", "message", "field"),
    [
        ("temperature", "temperature must be non-negative", "temperature"),
        ("logprobs", "Requested sample logprobs of 300", "top_logprobs"),
        ("input_tokens", "This model's maximum context length is 2048 tokens", "messages"),
        (None, "n must be at least 1, got 0.", "n"),
        (None, "`presence_penalty` must be in [-2, 2], got 9.0.", "presence_penalty"),
        (None, "Internal server error", None),
    ],
)
def test_an_error_is_about_a_field_as_the_request_names_it(named: str | None, message: str, field: str | None) -> None:
    assert refused_field(named, message, Endpoint.CHAT, BODY) == field


def test_the_prompt_of_a_completion_is_its_prompt_and_its_logprobs_are_a_number() -> None:
    assert refused_field("input_tokens", "too long", Endpoint.COMPLETION, {}) == "prompt"
    assert refused_field("logprobs", "too many", Endpoint.COMPLETION, {}) == "logprobs"


def test_a_value_of_a_wrong_type_is_told_by_its_place() -> None:
    message, place = first_fault(fault(max_tokens="many"), Endpoint.CHAT)
    assert place == "max_tokens"
    assert message.startswith("'max_tokens': Input should be a valid integer")
    assert first_fault(fault(messages=[{}, "x"]), Endpoint.CHAT)[1] == "messages[1]"
    assert first_fault(fault(stop=5), Endpoint.CHAT)[1] == "stop"


def test_of_very_many_faults_none_is_looked_for() -> None:
    message, place = first_fault(fault(messages=[5] * MOST_FAULTS), Endpoint.CHAT)
    assert (message, place) == ("'messages' is not what this endpoint takes", "messages")


def test_a_fault_in_the_parts_of_a_message_is_one_of_the_prompt() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(list[int]).validate_python(["x"])
    assert first_fault(caught.value, Endpoint.CHAT)[1] == "messages"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("an image_url", None),
        (None, None),
        ([{"type": "text", "text": "image_url"}, "image_url"], None),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "b"}}], "messages[1]"),
        ([{"type": "image_embeds", "image_embeds": "b"}], "messages[1]"),
    ],
)
def test_images_are_found_in_whatever_message_they_stand(content: object, place: str | None) -> None:
    expected = None if place is None else (f"'{place}': this model takes text only", place)
    assert refused_images({"messages": [{"content": "first"}, {"content": content}]}) == expected
    assert refused_images({"prompt": "image_url"}) is None
