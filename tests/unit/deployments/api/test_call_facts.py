"""How long a call is thought to be, before anything has tokenized it; and prompts that an engine's prefix cache would find alike have one
name for their beginning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.access.charges import prompts_of
from deployments.api.call_facts import EMBEDDING_CHARACTERS, FIRST, IMAGE_TOKENS, LOOKED_AT, REMEMBERED, CallFacts
from model_service.messages import MOST_ARGUMENT, Endpoint

LONG = "You are careful and brief. " * 10
NAMES = st.text(max_size=5) | st.sampled_from(["role", "content"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.sampled_from(["role", "content"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"prompt": "x" * 400}, 100),
        ({"prompt": "好" * 40}, 30),
        ({"messages": [{"content": "🙂" * 40}]}, 41),
        ({"prompt": [1, 2, 3]}, 3),
        ({"prompt": [[1, 2], [3]]}, 3),
        ({"messages": [{"role": "user", "content": "x" * 36}]}, 12),
        ({"messages": [{"content": [{"type": "text", "text": "x" * 36}, {"image_url": {"url": "y" * 9000}}]}]}, IMAGE_TOKENS + 16),
        ({"messages": [{"x": [None] * LOOKED_AT, "role": "user", "content": "x" * 90_000}]}, 2048),
        ({"messages": [{"x": dict.fromkeys(map(str, range(LOOKED_AT)), None), "content": "x" * 90_000}]}, 2048),
        ({"messages": [], "tools": [{"function": {"parameters": {"default": [None] * LOOKED_AT, "title": "x" * 90_000}}}]}, 2048),
        ({"messages": [], "tools": [{"function": {"parameters": {"properties": {"x" * 90_000: {}}}}}]}, 2048),
        ({"messages": [], "documents": [{"text": "x" * 392}]}, 99),
        ({"messages": [], "documents": [{"image_url": "x" * 391}]}, 100),
        ({"messages": [], "tools": [{"properties": {"image_url": {"description": "x" * 90_000}}}]}, 2048),
        ({"messages": [], "tools": [{"enum": [0.25] * 400}]}, 2001),
        ({"messages": [], "tools": [{"enum": [10**4000] * 2}]}, 2048),
        ({"prompt_embeds": ["x" * 4 * EMBEDDING_CHARACTERS] * 2}, 8),
        ({"prompt": "x" * 90_000}, 2048),
        ({"prompt": ["x" * 90_000] * 3 + ["x" * 40]}, 3 * 2048 + 10),
        ({"prompt": [[1] * 90_000, [1, 2]]}, 2050),
        ({"tools": [{"function": {"name": "f" * 40}}]}, 13),
        ({"messages": [{"role": ["system"], "content": "x" * 36}]}, 13),
        ({}, 0),
    ],
)
def test_a_prompt_has_a_quarter_as_many_tokens_as_all_that_a_template_may_show_has_bytes(body: dict[str, Any], tokens: int) -> None:
    assert CallFacts(2048).prompt(body).tokens == tokens


@given(st.dictionaries(st.sampled_from(["messages", "tools", "prompt", "other"]), JSON))
def test_no_body_is_too_strange_to_be_measured(body: dict[str, Any]) -> None:
    assert 0 <= CallFacts(100).prompt(body).tokens <= 100 * (1 + prompts_of(body))


def test_a_body_that_is_deep_or_endless_is_measured_in_part() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    endless: list[Any] = []
    endless += ["text", endless]
    assert CallFacts(2048).prompt({"prompt": deep}).tokens == 0
    assert CallFacts(2048).prompt({"prompt": endless}).tokens > 0


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"messages": [], "n": 2, "max_tokens": 30}, 60),
        ({"messages": [], "n": 2}, 80),
        ({"messages": [], "n": 2, "vllm_xargs": {MOST_ARGUMENT: 7}}, 14),
        ({"prompt": ["a", "b"]}, 32),
    ],
)
def test_answers_have_so_many_tokens_at_most(body: dict[str, Any], tokens: int) -> None:
    endpoint = Endpoint.CHAT if "messages" in body else Endpoint.COMPLETION
    assert CallFacts(2048, 40).answers(endpoint, body, 10) == tokens


def test_a_grammar_forces_what_its_latest_answers_say() -> None:
    sizes = CallFacts(2048)
    assert sizes.forced("key") == 0
    sizes.answered("key", '{"usage":{"completion_tokens_details":{"forced_tokens":50}}}')
    assert (sizes.forced("key"), sizes.forced("other")) == (50, 0)
    for _ in range(30):
        sizes.answered("key", 'data: {"usage":{"completion_tokens_details":{"forced_tokens": 10}}}\n\n')
    assert sizes.forced("key") == 10


def test_text_of_the_answer_is_no_usage_figure() -> None:
    sizes = CallFacts(2048)
    sizes.answered("key", r'{"choices":[{"message":{"content":"{\"forced_tokens\":7}"}}]}')
    assert sizes.forced("key") == 0


def test_only_the_grammars_that_were_last_used_are_remembered() -> None:
    sizes = CallFacts(2048)
    for number in range(REMEMBERED + 1):
        sizes.answered(str(number), '"forced_tokens":5')
    assert (sizes.forced("0"), sizes.forced("1")) == (0, 5)


def prompt_prefix(body: dict[str, Any]) -> str:
    return CallFacts(2048).prompt(body).prefix


def chat(*messages: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": content} for role, content in messages], **fields}


def test_prompts_with_the_same_instructions_begin_alike_whatever_follows() -> None:
    one, other = chat(("system", LONG), ("user", "One.")), chat(("system", LONG), ("user", "Other."))
    assert prompt_prefix(one) == prompt_prefix(other) != ""
    assert prompt_prefix(one) != prompt_prefix(chat(("system", LONG + "!"), ("user", "One.")))


def test_tools_come_before_the_instructions() -> None:
    tools = [{"type": "function", "function": {"name": "look", "description": LONG}}]
    assert prompt_prefix(chat(("system", LONG), tools=tools)) != prompt_prefix(chat(("system", LONG)))
    assert prompt_prefix(chat(("user", "One."), tools=tools)) != ""


def test_the_turns_of_a_conversation_begin_alike() -> None:
    first = chat(("user", LONG))
    later = chat(("user", LONG), ("assistant", "Yes."), ("user", "And?"))
    assert prompt_prefix(first) == prompt_prefix(later) != ""


@pytest.mark.parametrize("text", ["x" * FIRST, "long " * 1000])
def test_without_instructions_only_the_first_part_counts(text: str) -> None:
    assert prompt_prefix({"prompt": text + "one"}) == prompt_prefix({"prompt": text + "other"}) != ""


def test_short_prompts_say_nothing() -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"prompt": "Hi."},
        {"messages": []},
        chat(("user", "Hi.")),
        {"messages": "nonsense"},
        {"prompt": None},
    ]
    for body in bodies:
        assert prompt_prefix(body) == ""


def test_token_ids_are_a_prompt_too_and_images_none() -> None:
    assert prompt_prefix({"prompt": list(range(1000))}) == prompt_prefix({"prompt": list(range(999))}) != ""
    image = [{"type": "image_url", "image_url": {"url": "x" * 5000}}]
    assert prompt_prefix(chat(("user", image))) == ""


def test_lone_surrogates_are_read() -> None:
    assert prompt_prefix({"prompt": "\ud800" * 600}) != ""


def test_a_number_that_is_no_token_is_not_written_out() -> None:
    facts = CallFacts(2048)
    name = facts.prompt({"prompt": [10**3999] * 2000}).prefix
    assert name
    assert facts.prompt({"prompt": [10**3998] * 2000}).prefix == name
    assert facts.prompt({"prompt": [2**63] * 2000}).prefix != name


def test_what_comes_behind_thousands_of_small_texts_counts_as_well() -> None:
    messages = [{"role": "user", "content": "a"}] * 2000 + [{"role": "user", "content": "x" * 100_000}]
    assert CallFacts(1_000_000).prompt({"messages": messages}).tokens > 25_000
