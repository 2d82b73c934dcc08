"""What the clients ask: questions as chats, with the constraint in each server's own words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import regex
import xgrammar
from jsonschema import Draft202012Validator

from grammar_service.backends.xgrammar.recipe import recipe_of
from grammar_service.spec import JSON_KINDS, GrammarKind, GrammarSpec
from load_tests.front_door.clients.messages import Answer
from load_tests.front_door.figures import FREE, NONE, OURS, STOCK
from load_tests.front_door.tasks import Question, make_questions

DIFFERENT = 64
"""Questions of a workload; clients ask them round and round."""
LENGTH = "length"


@dataclass(frozen=True, slots=True)
class Workload:
    """`answers_well(number, answer)`: whether the text is what the constraint of that question allows; of an answer that ended at its
    most tokens, the beginning of such a text."""

    name: str
    bodies: Mapping[str, Sequence[Mapping[str, Any]]]
    answers_well: Callable[[Answer], bool]

    def encoded(self, side: str, *, stream: bool) -> list[bytes]:
        return [json.dumps({**body, "stream": stream}).encode("ascii") for body in self.bodies[side]]

    def as_responses(self, *, stream: bool) -> list[bytes]:
        """Our bodies in the words of the Responses API."""
        return [json.dumps({**_response(body), "stream": stream}).encode("ascii") for body in self.bodies[OURS]]


def make_workload(name: str, model: str) -> Workload:
    """One of WORKLOADS; `model` is the served name. Raises UnknownTask."""
    questions, max_tokens = make_questions(FREE if name == NONE else name, DIFFERENT)
    chats = [{"model": model, "messages": [_turn(one)], "temperature": 0, "max_tokens": max_tokens} for one in questions]
    if name == NONE:
        chats = [{**chat, "min_tokens": max_tokens, "ignore_eos": True} for chat in chats]
        return Workload(name, dict.fromkeys((STOCK, OURS), chats), lambda answer: answer.finish == LENGTH)
    ways = {STOCK: stock_constraint, OURS: _our_constraint}
    bodies = {
        side: [{**chat, "structured_outputs": way(one.spec)} for chat, one in zip(chats, questions, strict=True)]
        for side, way in ways.items()
    }
    judges = [_judge(one.spec) for one in questions]
    return Workload(name, bodies, lambda answer: judges[answer.body](answer))


def stock_constraint(spec: GrammarSpec) -> dict[str, str]:
    """The one argument of vLLM's `StructuredOutputsParams` that makes stock vLLM force the same text.

    JSON schemas go in as the EBNF that xgrammar makes of them in the layout of `json.dumps`: of vLLM's own two layouts one leaves
    whitespace free, where a small model would fill its answers with blanks, and the other has spaces after commas only. So both engines
    compile the same grammar with the same library.
    """
    recipe = recipe_of(spec)
    if spec.kind not in JSON_KINDS:
        return {"regex": recipe.text}
    grammar = xgrammar.Grammar.from_json_schema(recipe.text, any_whitespace=False, separators=(", ", ": "), strict_mode=False)
    return {"grammar": str(grammar)}


def _response(chat: Mapping[str, Any]) -> dict[str, Any]:
    names = {"messages": "input", "max_tokens": "max_output_tokens"}
    return {names.get(name, name): value for name, value in chat.items()}


def _turn(question: Question) -> dict[str, str]:
    return {"role": "user", "content": question.content}


def _our_constraint(spec: GrammarSpec) -> dict[str, Any]:
    return {"json": json.loads(spec.text)} if spec.kind is GrammarKind.JSON_SCHEMA else {"regex": spec.text}


def _judge(spec: GrammarSpec) -> Callable[[Answer], bool]:
    if spec.kind is not GrammarKind.JSON_SCHEMA:
        pattern = regex.compile(spec.text)
        return lambda answer: pattern.fullmatch(answer.text, partial=answer.finish == LENGTH) is not None
    validator = Draft202012Validator(json.loads(spec.text))
    return lambda answer: answer.text.startswith("{") if answer.finish == LENGTH else _is_valid(validator, answer.text)


def _is_valid(validator: Draft202012Validator, text: str) -> bool:
    try:
        return bool(validator.is_valid(json.loads(text)))
    except ValueError:
        return False
