from __future__ import annotations

import json
from random import Random

import jsonschema
import pytest
import xgrammar
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import select_backend
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.errors import UnknownTask
from load_tests.jump_forward.city_guide import city_guide
from load_tests.jump_forward.figures import CITY, FREE, TASKS
from load_tests.jump_forward.stock_constraint import stock_constraint
from load_tests.jump_forward.tasks import make_task

CONTEXT = 2048


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    loaded: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(EMBEDDED_WEIGHTS)
    return loaded


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_the_same_each_time_fits_the_context_and_has_the_cheapest_masks(name: str, tokenizer: PreTrainedTokenizerBase) -> None:
    task = make_task(name, 4, tokenizer)
    assert task == make_task(name, 4, tokenizer)
    assert len({ask.prompt for ask in task.asks}) == 4
    assert all(len(ask.prompt) + task.max_tokens <= CONTEXT for ask in task.asks)
    assert {select_backend(ask.spec).name for ask in task.asks} == {"automata" if name == FREE else "xgrammar"}


def test_an_unknown_task_is_named(tokenizer: PreTrainedTokenizerBase) -> None:
    with pytest.raises(UnknownTask, match="'poem'"):
        make_task("poem", 1, tokenizer)


def test_a_city_document_is_long_and_a_batch_of_them_bounded(tokenizer: PreTrainedTokenizerBase) -> None:
    task = make_task(CITY, 64, tokenizer)
    assert len(task.asks) == 32
    assert all(1400 <= len(ask.prompt) <= 1650 for ask in task.asks)


def test_a_guide_keeps_within_its_length_and_states_the_facts() -> None:
    guide = city_guide(Random(1), len, 2000)
    assert 1700 <= len(guide) <= 2000
    assert "The population is " in guide
    assert "This is a guide to " in guide


def test_stock_vllm_is_given_the_layout_of_json_dumps() -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 16}, "sizes": {"type": "array", "items": {"type": "integer"}}},
        "required": ["name", "sizes"],
        "additionalProperties": False,
    }
    constraint = stock_constraint(GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema)))
    vocabulary = GrammarTokenizer.load(EMBEDDED_WEIGHTS)
    grammar = xgrammar.GrammarCompiler(vocabulary.xgrammar).compile_grammar(constraint["grammar"])
    value = {"name": "Lara", "sizes": [1, 2]}
    jsonschema.validate(value, schema)
    for text, accepted in (
        (json.dumps(value), True),
        (json.dumps(value, separators=(",", ":")), False),
        (json.dumps(value, indent=1), False),
    ):
        assert xgrammar.GrammarMatcher(grammar, terminate_without_stop_token=True).accept_string(text) is accepted


def test_nothing_is_forced_where_nothing_should_be(tokenizer: PreTrainedTokenizerBase) -> None:
    task = make_task(FREE, 1, tokenizer)
    grammar = xgrammar.GrammarCompiler(GrammarTokenizer.load(EMBEDDED_WEIGHTS).xgrammar).compile_regex(task.asks[0].spec.text)
    matcher = xgrammar.GrammarMatcher(grammar)
    for _ in range(task.max_tokens):
        assert matcher.find_jump_forward_string() == ""
        assert matcher.accept_string("abcdefgh")
