"""What people put in front of a model: instructor, LangChain, pydantic-ai, OpenAI's agents, LiteLLM, Outlines, DSPy.

Modes that ask for any JSON object, and tell the schema in the prompt alone, are left out: whether the object fits is up to the model.
"""

from __future__ import annotations

from typing import Any

import openai
import pytest
from conftest import QUESTION, Person

MESSAGES = [{"role": "user", "content": QUESTION}]


@pytest.mark.parametrize("mode", ["TOOLS", "JSON_SCHEMA", "TOOLS_STRICT", "RESPONSES_TOOLS"])
def test_instructor(url: str, model: str, mode: str) -> None:
    import instructor

    client = instructor.from_openai(openai.OpenAI(base_url=url), mode=instructor.Mode[mode])
    asked = {"model": model, "messages": MESSAGES, "response_model": Person, "temperature": 0, "max_retries": 0}
    limit = "max_output_tokens" if mode.startswith("RESPONSES") else "max_tokens"
    assert isinstance(client.chat.completions.create(**asked, **{limit: 128}), Person)


def test_instructor_streams_partial_objects(url: str, model: str) -> None:
    import instructor

    client = instructor.from_openai(openai.OpenAI(base_url=url), mode=instructor.Mode.JSON_SCHEMA)
    asked = {"model": model, "messages": MESSAGES, "response_model": Person, "temperature": 0, "max_tokens": 128}
    *_, last = client.chat.completions.create_partial(**asked)
    assert Person(**last.model_dump())


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize("responses", [False, True])
def test_langchain(url: str, model: str, method: str, responses: bool) -> None:
    from langchain_openai import ChatOpenAI

    chat = ChatOpenAI(model=model, base_url=url, temperature=0, max_tokens=128, max_retries=0, use_responses_api=responses)
    assert isinstance(chat.with_structured_output(Person, method=method).invoke(QUESTION), Person)


def test_langchain_with_anthropic(root: str, model: str) -> None:
    from langchain_anthropic import ChatAnthropic

    chat = ChatAnthropic(model=model, base_url=root, max_tokens=128, max_retries=0)
    assert isinstance(chat.with_structured_output(Person).invoke(QUESTION), Person)


def _pydantic_ai_models(url: str, model: str) -> dict[str, Any]:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=url, api_key="none")
    return {"chat": OpenAIChatModel(model, provider=provider), "responses": OpenAIResponsesModel(model, provider=provider)}


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("output", ["ToolOutput", "NativeOutput"])
async def test_pydantic_ai(url: str, model: str, api: str, output: str) -> None:
    import pydantic_ai

    how = getattr(pydantic_ai, output)(Person)
    settings = {"temperature": 0, "max_tokens": 128, "parallel_tool_calls": False}
    agent = pydantic_ai.Agent(_pydantic_ai_models(url, model)[api], output_type=how, model_settings=settings)
    assert isinstance((await agent.run(QUESTION)).output, Person)
    async with agent.run_stream(QUESTION) as streamed:
        assert isinstance(await streamed.get_output(), Person)


@pytest.mark.parametrize("api", ["responses", "chat_completions"])
async def test_agents(url: str, model: str, api: str) -> None:
    from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner

    kind = {"responses": OpenAIResponsesModel, "chat_completions": OpenAIChatCompletionsModel}[api]
    behind = kind(model=model, openai_client=openai.AsyncOpenAI(base_url=url))
    agent = Agent(name="reader", model=behind, output_type=Person, model_settings=ModelSettings(temperature=0, max_tokens=128))
    assert isinstance((await Runner.run(agent, QUESTION)).final_output, Person)
    streamed = Runner.run_streamed(agent, QUESTION)
    assert [event async for event in streamed.stream_events()]
    assert isinstance(streamed.final_output, Person)


@pytest.mark.parametrize("api", ["responses", "chat_completions"])
@pytest.mark.parametrize("streams", [False, True])
async def test_agents_with_tools_and_a_type_of_output(url: str, model: str, api: str, streams: bool) -> None:
    """As its example of tools does it; what a small model calls is not looked at, but that it is called with valid arguments."""
    from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool

    called = list[tuple[str, int]]()

    @function_tool
    def look_up(name: str, most: int) -> str:
        """Look a person up.

        Args:
            name: Of the person.
            most: How many lines to return.
        """
        called.append((name, most))
        return "She lives in Lisbon."

    kind = {"responses": OpenAIResponsesModel, "chat_completions": OpenAIChatCompletionsModel}[api]
    behind = kind(model=model, openai_client=openai.AsyncOpenAI(base_url=url))
    settings = ModelSettings(temperature=0, max_tokens=128, tool_choice="required", parallel_tool_calls=False)
    agent = Agent(name="reader", model=behind, tools=[look_up], output_type=Person, model_settings=settings)
    if streams:
        run = Runner.run_streamed(agent, QUESTION, max_turns=6)
        assert [event async for event in run.stream_events()]
    else:
        run = await Runner.run(agent, QUESTION, max_turns=6)
    assert isinstance(run.final_output, Person)
    assert called
    assert all(isinstance(name, str) and isinstance(most, int) for name, most in called)


def test_litellm(url: str, model: str) -> None:
    import litellm

    asked = {"model": f"openai/{model}", "api_base": url, "api_key": "none", "messages": MESSAGES, "temperature": 0, "max_tokens": 128}
    answer = litellm.completion(**asked, response_format=Person)
    assert Person.model_validate_json(answer.choices[0].message.content)
    pieces = [part.choices[0].delta.content or "" for part in litellm.completion(**asked, response_format=Person, stream=True)]
    assert Person.model_validate_json("".join(pieces))


def test_outlines(url: str, model: str) -> None:
    import outlines

    behind = outlines.from_openai(openai.OpenAI(base_url=url), model)
    assert isinstance(Person.model_validate_json(behind(QUESTION, Person, temperature=0, max_tokens=128)), Person)


def test_outlines_with_its_model_for_vllm(url: str, model: str) -> None:
    import outlines

    behind = outlines.from_vllm(openai.OpenAI(base_url=url), model)
    assert behind(QUESTION, outlines.regex("[a-z]{3}"), max_tokens=8).isalpha()


def test_dspy(url: str, model: str) -> None:
    """It asks LiteLLM's table whether a model keeps to schemas, and asks for any JSON object where the table does not know the model."""
    import dspy
    import litellm

    litellm.register_model({f"openai/{model}": {"litellm_provider": "openai", "mode": "chat", "supports_response_schema": True}})

    class Extract(dspy.Signature):
        text: str = dspy.InputField()
        age: int = dspy.OutputField()

    behind = dspy.LM(f"openai/{model}", api_base=url, api_key="none", temperature=0, max_tokens=128, cache=False, num_retries=0)
    with dspy.context(lm=behind, adapter=dspy.JSONAdapter()):
        assert isinstance(dspy.Predict(Extract)(text=QUESTION).age, int)
