"""What the grammars of calls in blocks allow, vLLM's parser of that name reads back: whole and streamed, behind reasoning and without."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.abstract_parser import Parser
from vllm.parser.parser_manager import ParserManager
from vllm.reasoning import ReasoningParserManager

from deployments.constraints.tool_calls.tools import auto_tag, forced_tag, parse_tools
from grammar_service.backends import CompiledGrammar
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.frontend.reasoning import reasoning_ended
from model_service.engine.reasoning.masks import end_marks
from model_service.messages import KEY_ARGUMENT
from tests.driving import allowed, grammar_of
from tests.integration.tool_calls.reading import deltas, merged
from tests.integration.tool_calls.test_literals import SCHEMA as TYPES
from tests.integration.tool_calls.walking import check_calls
from tests.tokenizers.tiny_tokenizer import STOP_ID, tiny_tokenizer

PLAMO = ("<|plamo:begin_", "<|plamo:end_", ":plamo|>", "<|plamo:constrain|>", "<|plamo:msg|>", "<|plamo:tag|>")
INKLING = (
    *("<|message_model|>", "<|content_text|>", "<|content_thinking|>", "<|content_invoke_tool_json|>"),
    *("<|content_invoke_tool_text|>", "<|content_tool_error|>", "<|content_model_end_sampling|>", "<|end_message|>"),
)
HOSTILE = ("<|end_message|>", "<|plamo:end_tool_arguments:plamo|>", '"name": "x"', "}]", "\u0000\u001f", "\U0001f600é", "<|end|>", "")
SCHEMA: dict[str, Any] = {
    **TYPES,
    "properties": {
        **{name: one for name, one in TYPES["properties"].items() if name != "code"},
        "hostile": {"enum": [*HOSTILE]},
        "name": {"type": "object", "properties": {"args": {"type": "string"}, "name": {"const": 5.0}}, "required": ["name"]},
    },
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "look_up": SCHEMA,
    "order-tea.v2": {
        "type": "object",
        "properties": {"size": {"type": "number"}, "count": {"$ref": "#/$defs/Count"}},
        "$defs": {"Count": {"type": "integer"}},
    },
    "args": {"type": "object", "properties": {}, "additionalProperties": False},
}
TOOLS = [{"type": "function", "function": {"name": name, "strict": True, "parameters": schema}} for name, schema in SCHEMAS.items()]
ARGUMENTS = '{"text": "\\u003c|plamo:tag|>\\\\", "size": 5.0}'
CALL = {
    "plamo3": (
        "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>look_up<|plamo:end_tool_name:plamo|>"
        f"<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{ARGUMENTS}<|plamo:end_tool_arguments:plamo|>"
        "<|plamo:end_tool_request:plamo|>"
    ),
    "inkling": f'look_up<|content_invoke_tool_json|>{{"name":"look_up","args":{ARGUMENTS}}}<|end_message|>',
}
CALLS = {
    "plamo3": f"<|plamo:begin_tool_requests:plamo|>{2 * CALL['plamo3']}<|plamo:end_tool_requests:plamo|>",
    "inkling": f"{CALL['inkling']}<|message_model|>{CALL['inkling']}",
}
"""As the models' chat templates write them."""
TEXT = "Let me {see} <b>é</b>: [\n"
BEHIND_TEXT = {
    "plamo3": f"{TEXT}{CALLS['plamo3']}",
    "inkling": f"<|content_text|>{TEXT}<|end_message|><|message_model|>{CALLS['inkling']}",
}
TEXT_ALONE = {"plamo3": TEXT, "inkling": f"<|content_text|>{TEXT}<|end_message|>"}
THOUGHT = {
    "plamo3": "Hm.<|plamo:end_think:plamo|>",
    "inkling": "<|content_thinking|>Hm.<|end_message|><|message_model|>",
}
LONGEST = 4000
WAYS = (None, 1, 5, LONGEST)
"""Tokens at once; None: the answer is read whole."""
EVERY_FORMAT = pytest.mark.parametrize("name", CALLS)
Grammars = Callable[..., CompiledGrammar]


@pytest.fixture(scope="module", params=[True, False], ids=["special", "plain"])
def marked(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    """The parts of PLaMo's marks are special tokens or have a text."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([*PLAMO], special_tokens=request.param)
    tokenizer.add_special_tokens({"additional_special_tokens": [*INKLING]})
    return tokenizer


@pytest.fixture(scope="module")
def grammars(vocabulary: GrammarTokenizer) -> Grammars:
    made: dict[tuple[str, bool], CompiledGrammar] = {}

    def make(name: str, single: bool = False) -> CompiledGrammar:
        if (name, single) not in made:
            made[name, single] = grammar_of(forced_tag(parse_tools({"tools": TOOLS}, name), name, single).spec, vocabulary)
        return made[name, single]

    return make


def walk(grammar: CompiledGrammar, vocabulary: GrammarTokenizer, seed: int) -> list[int]:
    """The tokens of a random answer, which likes what looks like a mark."""
    choose, matcher, tokens = random.Random(seed), grammar.matcher(None, 0), list[int]()
    specials = set(vocabulary.special_tokens.values())
    likely = {token for token, text in enumerate(vocabulary.vocabulary) if text and set(text) <= set(b'<|plamo:end>_mesg"{}[]:,\\-.0eu \n')}
    closing = {token for token, text in enumerate(vocabulary.vocabulary) if text in (b'"', b"}", b"]", b'"}')}
    while len(tokens) < LONGEST:
        options = allowed(matcher, vocabulary.vocab_size)
        if STOP_ID in options and (len(options) == 1 or choose.random() < 0.5):
            return tokens
        wanted = options & specials if choose.random() < (0.1 if len(tokens) < LONGEST // 8 else 0.9) else set[int]()
        pool = wanted or (options & closing if len(tokens) > LONGEST // 8 or choose.random() < 0.2 else options & likely)
        token = choose.choice(sorted(pool or options - {STOP_ID}))
        assert matcher.accept(token), (tokens, token)
        tokens.append(token)
    raise AssertionError(f"the walk does not end: {b''.join(vocabulary.vocabulary[token] for token in tokens)!r}")


def of_vllm(name: str, marked: PreTrainedTokenizerFast, reasons: bool) -> tuple[ChatCompletionRequest, Parser]:
    told = {"model": "any", "messages": [{"role": "user", "content": "hello"}], "tools": TOOLS, "tool_choice": "auto"}
    request = ChatCompletionRequest.model_validate({**told, "vllm_xargs": {KEY_ARGUMENT: "key"}})
    parser = ParserManager.get_parser(name, name if reasons else None, True)(marked, request.tools)
    return parser.adjust_request(request), parser


def read(
    name: str, tokens: list[int], marked: PreTrainedTokenizerFast, most: int | None, reasons: bool
) -> tuple[str, list[tuple[str, str]]]:
    """The content and the calls, by vLLM: in a stream of `most` tokens at once, or whole."""
    request, parser = of_vllm(name, marked, reasons)
    if most is None:
        text = str(marked.decode(tokens, skip_special_tokens=False))
        _, content, calls = parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=tokens)
        return content or "", [(call.name, call.arguments) for call in calls or ()]
    prompt = [marked.convert_tokens_to_ids(INKLING[0])]
    pieces = [*deltas(tokens, marked, most), ("", [STOP_ID])]
    told = [parser.parse_delta(text, some, request, prompt, finished=some == [STOP_ID]) for text, some in pieces]
    return "".join(delta.content or "" for delta in told if delta), merged(told)


def read_all_ways(name: str, tokens: list[int], marked: PreTrainedTokenizerFast) -> tuple[str, list[tuple[str, str]]]:
    """Behind reasoning, and without. Where nothing reads Inkling's reasoning, vLLM takes names for content as well."""
    behind = [*marked.encode(THOUGHT[name], add_special_tokens=False), *tokens]
    whole, *others = (read(name, behind, marked, most, reasons=True) for most in WAYS)
    assert all(other == whole for other in others), marked.decode(tokens)
    for content, calls in (read(name, tokens, marked, most, reasons=False) for most in WAYS):
        assert calls == whole[1]
        assert content == whole[0] or name == "inkling"
    return whole


def tokens_of(text: str, marked: PreTrainedTokenizerFast) -> list[int]:
    return [*map(int, marked.encode(text, add_special_tokens=False))]


@EVERY_FORMAT
@pytest.mark.parametrize("single", [False, True])
def test_calls_are_read_back_whole_and_streamed(
    name: str, single: bool, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer, grammars: Grammars
) -> None:
    walks = (walk(grammars(name, single), vocabulary, seed) for seed in range(16))
    check_calls((read_all_ways(name, tokens, marked)[1] for tokens in walks), SCHEMAS, single)


@EVERY_FORMAT
@pytest.mark.parametrize("member", SCHEMA["properties"])
def test_each_kind_of_argument_is_read_back_and_valid(
    name: str, member: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    schema = {**SCHEMA, "properties": {member: SCHEMA["properties"][member]}, "required": [member]}
    tools = [{"type": "function", "function": {"name": "look_up", "strict": True, "parameters": schema}}]
    compiled = grammar_of(forced_tag(parse_tools({"tools": tools}, name), name, True).spec, vocabulary)
    for seed in range(2):
        tokens = walk(compiled, vocabulary, seed)
        [(_, arguments)] = read_all_ways(name, tokens, marked)[1]
        Draft202012Validator(schema).validate(json.loads(arguments))


@EVERY_FORMAT
def test_calls_may_stand_behind_any_text(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    grammar = grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), None, name).spec, vocabulary)
    for text, content, calls in ((CALLS[name], "", 2), (BEHIND_TEXT[name], TEXT, 2), (TEXT_ALONE[name], TEXT, 0)):
        tokens = tokens_of(text, marked)
        assert accepted_prefix(grammar.matcher(None, 0), [*tokens, STOP_ID]) == len(tokens) + 1
        assert read_all_ways(name, tokens, marked) == (content, calls * [("look_up", ARGUMENTS)])


@EVERY_FORMAT
@pytest.mark.parametrize("value", ["-0", "-0.0", "5.0", "1e22", "0.1E-7", "123456789012345678901234567890", f"{'9' * 300}.5"])
def test_numbers_are_read_as_they_are_written(name: str, value: str, marked: PreTrainedTokenizerFast, grammars: Grammars) -> None:
    arguments = f'{{"size": {value}}}'
    tokens = tokens_of(CALLS[name].replace(ARGUMENTS, arguments), marked)
    assert accepted_prefix(grammars(name).matcher(None, 0), [*tokens, STOP_ID]) == len(tokens) + 1
    assert read_all_ways(name, tokens, marked)[1] == 2 * [("look_up", arguments)]


@pytest.mark.parametrize(
    ("name", "block", "text"),
    [
        *(("plamo3", "", text) for text in ("<|plamo:begin_tool_requests:plamo|>x", "<|plamo:begin_think:plamo|>", "<|plamo:tag|>")),
        *(("inkling", block, text) for block in INKLING[1:3] for text in INKLING),
    ],
)
def test_text_does_not_spell_a_mark(name: str, block: str, text: str, vocabulary: GrammarTokenizer) -> None:
    grammar = grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), None, name).spec, vocabulary)
    ahead = [vocabulary.special_tokens[block]] if block else []
    tokens = [*ahead, *(vocabulary.byte_tokens[byte] for byte in text.encode())]
    assert accepted_prefix(grammar.matcher(None, 0), tokens) < len(tokens)


@EVERY_FORMAT
def test_an_answer_of_a_schema_may_stand_in_place_of_calls(
    name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    note = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"], "additionalProperties": False}
    grammar = grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), note, name).spec, vocabulary)
    answer = '{"note": "\\u003c|plamo:tag|> \\u003c|end_message|> }"}'
    for text, content, calls in ((TEXT_ALONE[name].replace(TEXT, answer), answer, 0), (CALLS[name], "", 2)):
        tokens = tokens_of(text, marked)
        assert accepted_prefix(grammar.matcher(None, 0), [*tokens, STOP_ID]) == len(tokens) + 1
        assert read_all_ways(name, tokens, marked) == (content, calls * [("look_up", ARGUMENTS)])


def test_calls_of_plamo_do_not_begin_within_its_reasoning(marked: PreTrainedTokenizerFast) -> None:
    found = end_marks(ReasoningParserManager.get_reasoning_parser("plamo3")(marked))
    assert found.end == tuple(tokens_of("<|plamo:end_think:plamo|>", marked))
    assert found.others == {marked.convert_tokens_to_ids(PLAMO[0])}
    assert not found.others & {*found.end}


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        ({}, True),
        ({"tool_choice": "required"}, True),
        *((other, False) for other in ({"tool_choice": "none"}, {"tools": None}, {"vllm_xargs": None})),
    ],
)
def test_constraints_with_calls_of_inkling_hold_from_the_beginning(
    fields: dict[str, Any], holds: bool, marked: PreTrainedTokenizerFast
) -> None:
    request, parser = of_vllm("inkling", marked, reasons=True)
    asked = request.model_copy(update=fields)
    prompt = [int(marked.convert_tokens_to_ids(INKLING[0]))]
    assert reasoning_ended(asked, parser, prompt) is holds
    assert not parser.is_reasoning_end(prompt)
