"""OpenAI's Responses API and Anthropic's Messages API, as their own clients speak them."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from tests.e2e.service import MODEL, Service, wait_for
from tests.e2e.test_openai_client import MESSAGES, QUESTION, Person

SCHEMA: dict[str, Any] = Person.model_json_schema() | {"additionalProperties": False}
CLARA = Person(name="Clara Novak", age=34, city="Lisbon")
GREEDY = {"temperature": 0}
"""In the body, as Anthropic's client has no such argument any more."""
TOOL: Any = {"type": "function", "name": "record_person", "parameters": SCHEMA, "strict": True}


@pytest.fixture
def claude(service: Service) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=service.url, api_key="unused", max_retries=0)


def test_a_response_is_parsed(service: Service) -> None:
    response = service.client().responses.parse(model=MODEL, input=QUESTION, text_format=Person, max_output_tokens=64, temperature=0)
    assert response.output_parsed == CLARA
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


def test_a_streamed_response_ends_as_the_whole_one(service: Service) -> None:
    asked: dict[str, Any] = {"model": MODEL, "input": QUESTION, "text_format": Person, "max_output_tokens": 64, "temperature": 0}
    with service.client().responses.stream(**asked) as stream:
        texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
        response = stream.get_final_response()
    assert response.output_parsed == CLARA
    assert "".join(texts) == response.output_text == service.client().responses.parse(**asked).output_text


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "record_person"}])
def test_a_response_calls_a_function(service: Service, choice: Any) -> None:
    client = service.client()
    asked: dict[str, Any] = {"model": MODEL, "input": QUESTION, "tools": [TOOL], "tool_choice": choice, "temperature": 0}
    (call,) = client.responses.create(**asked, parallel_tool_calls=False).output
    assert call.type == "function_call"
    assert Person.model_validate_json(call.arguments) == CLARA
    with client.responses.stream(**asked, parallel_tool_calls=False) as stream:
        (streamed,) = stream.get_final_response().output
    assert streamed.type == "function_call"
    assert streamed.arguments == call.arguments


def test_a_response_goes_on_from_the_one_before(service: Service) -> None:
    client = service.client()
    first = client.responses.create(model=MODEL, input=QUESTION, instructions="Answer.", max_output_tokens=8, temperature=0)
    then = client.responses.create(model=MODEL, input="And then?", previous_response_id=first.id, max_output_tokens=8)
    assert client.responses.retrieve(then.id) == then
    listed: list[Any] = list(client.responses.input_items.list(then.id, order="asc"))
    assert [(item.role, item.content[0].text) for item in listed] == [
        ("user", QUESTION),
        ("assistant", first.output_text),
        ("user", "And then?"),
    ]
    assert then.usage is not None
    assert first.usage is not None
    assert then.usage.input_tokens > first.usage.input_tokens - 8
    client.responses.delete(then.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(then.id)
    with pytest.raises(openai.BadRequestError, match="no response of this id") as raised:
        client.responses.create(model=MODEL, input="And then?", previous_response_id=then.id)
    assert raised.value.code == "previous_response_not_found"


def test_a_response_that_is_not_to_be_stored_is_not(service: Service) -> None:
    client = service.client()
    response = client.responses.create(model=MODEL, input=QUESTION, store=False, max_output_tokens=4)
    assert (response.status, response.incomplete_details and response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


def test_a_response_is_made_in_the_background(service: Service) -> None:
    client = service.client()
    text: Any = {"format": {"type": "json_schema", "name": "person", "schema": SCHEMA, "strict": True}}
    asked: dict[str, Any] = {"model": MODEL, "input": QUESTION, "background": True, "temperature": 0}
    begun = client.responses.create(**asked, text=text, max_output_tokens=64)
    assert begun.status == "in_progress"
    response = wait_for(lambda: ended(client, begun.id), 60, "the response")
    assert (response.status, Person.model_validate_json(response.output_text)) == ("completed", CLARA)
    refused = client.responses.create(**asked, extra_body={"structured_outputs": {"regex": "("}})
    failed = wait_for(lambda: ended(client, refused.id), 60, "the error")
    assert failed.error is not None
    assert (failed.status, failed.error.code) == ("failed", "invalid_prompt")


def test_a_response_in_the_background_is_cancelled(service: Service) -> None:
    client = service.client()
    long: Any = {"structured_outputs": {"regex": "[a-f]{1800}"}}
    begun = client.responses.create(model=MODEL, input=QUESTION, background=True, extra_body=long)
    wait_for(lambda: service.status().running == 1, 20, "its work to begin")
    assert client.responses.cancel(begun.id).status == "cancelled"
    assert client.responses.retrieve(begun.id).status == "cancelled"
    wait_for(lambda: service.status().running == 0, 20, "its work to end")
    assert client.responses.retrieve(begun.id).output == []


def ended(client: openai.OpenAI, response_id: str) -> Any:
    response = client.responses.retrieve(response_id)
    return None if response.status == "in_progress" else response


def test_a_response_and_a_message_end_in_time(service: Service, claude: anthropic.Anthropic) -> None:
    asked: dict[str, Any] = {"model": MODEL, "temperature": 0, "extra_body": {"close_at_limit": True}}
    response = service.client().responses.parse(input=QUESTION, text_format=Person, max_output_tokens=18, **asked)
    assert isinstance(response.output_parsed, Person)
    assert (response.status, response.incomplete_details and response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert response.usage is not None
    assert response.usage.output_tokens_details.to_dict()["closed_at_limit"] == 1
    config: Any = {"format": {"type": "json_schema", "schema": SCHEMA}}
    body = {**GREEDY, "close_at_limit": True}
    message = claude.messages.create(model=MODEL, max_tokens=18, messages=MESSAGES, output_config=config, extra_body=body)
    (block,) = message.content
    assert block.type == "text"
    Person.model_validate_json(block.text)
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens_details is not None
    assert message.usage.output_tokens_details.to_dict()["closed_at_limit"] == 1


def test_a_response_names_what_is_wrong_where_the_request_has_it(service: Service) -> None:
    items: Any = [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]
    with pytest.raises(openai.BadRequestError) as raised:
        service.client().responses.create(model=MODEL, input=items, instructions="Read.")
    assert raised.value.param == "input[0].content[0].type"


def test_a_message_of_a_schema(claude: anthropic.Anthropic) -> None:
    config: Any = {"format": {"type": "json_schema", "schema": SCHEMA}}
    message = claude.messages.create(model=MODEL, max_tokens=64, messages=MESSAGES, output_config=config, extra_body=GREEDY)
    (block,) = message.content
    assert block.type == "text"
    assert Person.model_validate_json(block.text) == CLARA
    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens > 0


def test_a_streamed_message(claude: anthropic.Anthropic) -> None:
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 12, "messages": MESSAGES, "system": "Answer.", "extra_body": GREEDY}
    with claude.messages.stream(**asked) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    whole = claude.messages.create(**asked)
    assert text == whole.content[0].text
    assert (message.stop_reason, message.usage) == (whole.stop_reason, whole.usage)


@pytest.mark.parametrize("choice", [{"type": "any", "disable_parallel_tool_use": True}, {"type": "tool", "name": "record_person"}])
def test_a_message_uses_a_tool_and_hears_its_result(claude: anthropic.Anthropic, choice: Any) -> None:
    tools: Any = [{"name": "record_person", "input_schema": SCHEMA}]
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 96, "tools": tools, "extra_body": GREEDY}
    message = claude.messages.create(**asked, messages=MESSAGES, tool_choice=choice)
    (use,) = message.content
    assert use.type == "tool_use"
    assert (Person.model_validate(use.input), message.stop_reason) == (CLARA, "tool_use")
    with claude.messages.stream(**asked, messages=MESSAGES, tool_choice=choice) as stream:
        (streamed,) = stream.get_final_message().content
    assert streamed.type == "tool_use"
    assert streamed.input == use.input
    result: Any = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "done"}]}
    turns = [*MESSAGES, {"role": "assistant", "content": message.content}, result]
    assert claude.messages.create(**{**asked, "max_tokens": 4}, messages=turns).usage.input_tokens > message.usage.input_tokens


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_has_too_few_tokens_is_told_as_cut_off(service: Service, claude: anthropic.Anthropic, stream: bool) -> None:
    named: Any = {"type": "function", "name": "record_person"}
    asked: dict[str, Any] = {"model": MODEL, "input": QUESTION, "tools": [TOOL], "tool_choice": named, "max_output_tokens": 16}
    told: Any = service.client().responses.create(**asked, stream=stream)
    response = [*told][-1].response if stream else told
    assert (response.status, {getattr(item, "status", None) for item in response.output} - {"incomplete"}) == ("incomplete", set())
    tools: Any = [{"name": "record_person", "input_schema": SCHEMA}]
    used: Any = {"type": "tool", "name": "record_person"}
    message_asked: dict[str, Any] = {"model": MODEL, "messages": MESSAGES, "tools": tools, "tool_choice": used, "max_tokens": 12}
    with claude.messages.stream(**message_asked) as pieces:
        message = pieces.get_final_message() if stream else claude.messages.create(**message_asked)
    assert message.stop_reason == "max_tokens"


def test_an_error_of_the_engine_names_the_field_of_the_request(service: Service) -> None:
    with pytest.raises(openai.BadRequestError, match="context") as raised:
        service.client().responses.create(model=MODEL, input="word " * 5000)
    assert raised.value.param == "input"


def test_errors_have_the_form_of_the_messages_api(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="does not exist"):
        claude.messages.create(model="other", max_tokens=4, messages=MESSAGES)
    heard: Any = [{"role": "user", "content": [{"type": "audio"}]}]
    with pytest.raises(anthropic.BadRequestError) as raised:
        claude.messages.create(model=MODEL, max_tokens=4, messages=heard)
    body: Any = raised.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
    assert body["error"]["param"] == "messages[0].content[0].type"


def test_a_path_that_is_not_there_says_what_is(service: Service) -> None:
    with pytest.raises(openai.NotFoundError, match="generates text"):
        service.client().embeddings.create(model=MODEL, input="x")


def test_what_is_not_done_of_a_message_is_told(claude: anthropic.Anthropic) -> None:
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    raw = claude.messages.with_raw_response.create(model=MODEL, max_tokens=4, messages=MESSAGES, thinking=thinking)
    (warning,) = json.loads(raw.text())["maskcast"]["warnings"]
    assert (warning["code"], warning["pointer"]) == ("no_effect", "/thinking")


def test_tokens_are_counted_as_the_model_reads_them(service: Service, claude: anthropic.Anthropic) -> None:
    asked: dict[str, Any] = {"model": MODEL, "system": "Answer.", "messages": [{"role": "user", "content": QUESTION}]}
    tool: Any = {"name": "record_person", "input_schema": SCHEMA}
    more: Any
    for more in ({}, {"tools": [tool]}):
        counted = claude.messages.count_tokens(**asked, **more).input_tokens
        usage = claude.messages.create(**asked, **more, max_tokens=1).usage
        assert counted == usage.input_tokens + (usage.cache_read_input_tokens or 0)
    with pytest.raises(anthropic.BadRequestError, match="messages"):
        claude.messages.count_tokens(model=MODEL, messages=[])


def test_texts_become_tokens_and_tokens_texts(service: Service) -> None:
    answer = service.post("/tokenize", {"prompt": QUESTION, "add_special_tokens": False, "return_token_strs": True}).json()
    assert answer["count"] == len(answer["tokens"]) == len(answer["token_strs"])
    assert answer["max_model_len"] >= 1024
    assert service.post("/detokenize", {"tokens": answer["tokens"]}).json() == {"prompt": QUESTION}
    chat: Any = {"messages": MESSAGES}
    usage = service.client().chat.completions.create(model=MODEL, **chat, max_tokens=1).usage
    assert usage is not None
    assert service.post("/tokenize", chat).json()["count"] == usage.prompt_tokens
    for path, body, param in [
        ("/tokenize", {}, "messages"),
        ("/tokenize", {"prompt": QUESTION, **chat}, "messages"),
        ("/detokenize", {"tokens": ["a"]}, "tokens"),
        ("/detokenize", {"tokens": [1 << 40]}, "tokens"),
    ]:
        refused = service.post(path, body)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param), refused.text
