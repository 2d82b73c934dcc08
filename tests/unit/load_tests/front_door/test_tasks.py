from __future__ import annotations

import json

import jsonschema
import pytest
import xgrammar

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import select_backend
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.errors import UnknownTask
from load_tests.front_door.figures import CHARACTER, EXTRACTION, FREE
from load_tests.front_door.tasks import make_questions
from load_tests.front_door.workloads import stock_constraint


@pytest.mark.parametrize("name", [CHARACTER, EXTRACTION, FREE])
def test_a_task_is_the_same_each_time_and_has_the_cheapest_masks(name: str) -> None:
    questions, _ = make_questions(name, 4)
    assert questions == make_questions(name, 4)[0]
    assert len({question.content for question in questions}) == 4
    assert {select_backend(question.spec).name for question in questions} == {"automata" if name == FREE else "xgrammar"}


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(UnknownTask, match="'poem'"):
        make_questions("poem", 1)


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


def test_nothing_is_forced_where_nothing_should_be() -> None:
    (question,), max_tokens = make_questions(FREE, 1)
    grammar = xgrammar.GrammarCompiler(GrammarTokenizer.load(EMBEDDED_WEIGHTS).xgrammar).compile_regex(question.spec.text)
    matcher = xgrammar.GrammarMatcher(grammar)
    for _ in range(max_tokens):
        assert matcher.find_jump_forward_string() == ""
        assert matcher.accept_string("abcdefgh")
