"""What the grammars of Mistral's tool calls allow, vLLM's parser reads back with Mistral's own tokenizer."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm.reasoning import ReasoningParserManager
from vllm.tokenizers import get_tokenizer
from vllm.tokenizers.detokenizer_utils import detokenize_incrementally

from deployments.constraints.tool_calls.tools import auto_tag, forced_tag, parse_tools
from grammar_service.backends import CompiledGrammar
from grammar_service.errors import InvalidGrammar
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.reasoning.masks import EndMarks, end_marks
from tests.driving import allowed, grammar_of
from tests.tokenizers.mistral_folder import save_sentencepiece_model, save_tekken_model

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA, "strict": True}} for name in ("get_weather", "order-tea.v2")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tekken_model(tmp_path_factory.mktemp("tekken"))


@pytest.fixture(scope="module")
def vocabulary(folder: Path) -> GrammarTokenizer:
    return GrammarTokenizer.load(folder)


def walk(grammar: CompiledGrammar, vocabulary: GrammarTokenizer, seed: int) -> list[int]:
    """The tokens of a random answer without its end."""
    choose, matcher, tokens = random.Random(seed), grammar.matcher(None, 0), list[int]()
    [stop], marks = vocabulary.stop_token_ids, set(vocabulary.special_tokens.values())
    closing = {token for token, text in enumerate(vocabulary.vocabulary) if text in (b'"', b"}", b'",')}
    while len(tokens) < 1000:
        options = allowed(matcher, vocabulary.vocab_size)
        if stop in options and (len(options) == 1 or choose.random() < 0.5):
            return tokens
        texts = sorted(one for one in options - marks - {stop} if vocabulary.vocabulary[one].isascii())
        wanted = sorted(options & marks) if not texts or choose.random() < 0.1 else sorted(options & closing)
        token = choose.choice(wanted if wanted and choose.random() < 0.5 else texts or sorted(options & marks))
        assert matcher.accept(token)
        tokens.append(token)
    raise AssertionError("the walk does not end")


def read(folder: Path, tokens: list[int], choice: Any, stream: bool) -> list[tuple[str, Any]]:
    tokenizer = get_tokenizer(str(folder))
    told = {"model": "any", "messages": [{"role": "user", "content": "hello"}], "tools": TOOLS, "tool_choice": choice}
    request = ChatCompletionRequest.model_validate(told)
    parser = ParserManager.get_parser("mistral", None, True)(tokenizer, request.tools)
    request = parser.adjust_request(request)
    pieces = [tokenizer.decode([token], skip_special_tokens=False) for token in tokens]
    if not stream:
        _, _, calls = parser.parse("".join(pieces), request, enable_auto_tools=True, model_output_token_ids=tokens)
        return [(call.name, json.loads(call.arguments)) for call in calls or ()]
    found: dict[int, list[str]] = {}
    for index, (piece, token) in enumerate(zip(pieces, tokens, strict=True)):
        delta = parser.parse_delta(piece, [token], request, [], finished=index == len(tokens) - 1)
        for call in delta.tool_calls if delta else ():
            parts = found.setdefault(call.index, ["", ""])
            parts[0] += (call.function and call.function.name) or ""
            parts[1] += (call.function and call.function.arguments) or ""
    return [(name, json.loads(arguments)) for _, (name, arguments) in sorted(found.items())]


@pytest.mark.parametrize("single", [True, False])
def test_forced_calls_are_read_back(single: bool, folder: Path, vocabulary: GrammarTokenizer) -> None:
    compiled, counts = grammar_of(forced_tag(parse_tools({"tools": TOOLS}), "mistral", single).spec, vocabulary), set()
    for seed in range(10):
        tokens = walk(compiled, vocabulary, seed)
        calls = read(folder, tokens, "required", stream=False)
        assert calls == read(folder, tokens, "required", stream=True)
        for name, arguments in calls:
            assert name in {tool["function"]["name"] for tool in TOOLS}
            Draft202012Validator(SCHEMA).validate(arguments)
        counts.add(min(len(calls), 2))
    assert counts == ({1} if single else {1, 2})


def test_calls_that_may_come_stand_behind_any_text(folder: Path, vocabulary: GrammarTokenizer) -> None:
    matcher = grammar_of(auto_tag(parse_tools({"tools": TOOLS}), None, "mistral").spec, vocabulary).matcher(None, 0)
    call, arguments = (vocabulary.special_tokens[mark] for mark in ("[TOOL_CALLS]", "[ARGS]"))
    text = [*vocabulary.encode("Let me see {"), call, *vocabulary.encode("get_weather"), arguments]
    tokens = [*text, *vocabulary.encode('{"city": "Oslo", "days": 2}')]
    assert all(map(matcher.accept, [*tokens, *vocabulary.stop_token_ids]))
    assert read(folder, tokens, "auto", stream=True) == [("get_weather", {"city": "Oslo", "days": 2})]
    matcher.reset()
    assert all(map(matcher.accept, [*vocabulary.encode("No call."), *vocabulary.stop_token_ids]))


def test_a_model_without_the_mark_is_told_so(tmp_path: Path) -> None:
    older = GrammarTokenizer.load(save_sentencepiece_model(tmp_path))
    with pytest.raises(InvalidGrammar, match=r"no special token '\[ARGS\]'"):
        grammar_of(forced_tag(parse_tools({"tools": TOOLS}), "mistral", False).spec, older)


def test_the_marks_of_its_reasoning_are_tokens(folder: Path) -> None:
    """Whose spelling its tokenizer takes for text."""
    reasoner = ReasoningParserManager.get_reasoning_parser("mistral")(get_tokenizer(str(folder)))
    assert end_marks(reasoner) == EndMarks((35,), frozenset({9}), (34,))


@pytest.mark.parametrize("skips", [True, False])
def test_characters_that_are_split_into_tokens_are_whole_in_the_end(folder: Path, skips: bool) -> None:
    tokenizer = get_tokenizer(str(folder))
    text = "a\u0d05\u0d4d\u0d05\N{GRINNING FACE}\N{REPLACEMENT CHARACTER}b"
    ids = tokenizer.encode(text, add_special_tokens=False)
    tokens: list[str] = []
    told, prefix, read_up_to = "", 0, 0
    for end in range(1, len(ids) + 1):
        new, piece, prefix, read_up_to = detokenize_incrementally(tokenizer, ids[:end], tokens or None, prefix, read_up_to, skips)
        tokens, told = tokens + new, told + piece
    assert len(ids) > len(text)
    assert told == text
