"""What an answer must be: the paper's algorithms as plain loops over torch models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from grammar_service.backends import CompiledGrammar, backend_named
from grammar_service.segments import Segmenter
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.lookahead.rewards import Sources, built, parsed
from tests.integration.model_service.lookahead.asking import END, VOCABULARY
from tests.integration.model_service.lookahead.torch_model import TorchModel
from tests.integration.model_service.running_engine import SETTINGS, Answer
from tests.unit.model_service.lookahead.reference import Reference
from tests.unit.model_service.lookahead.rewards.at_once import AtOnce

PEOPLE = ["Ada Young is 36 years old.", "Omar Haddad, 51, lives in Oslo.", "Clara Novak is 34.", "Ivan, 27, Bergen."]
QUESTIONS = [f"Extract {what} as JSON. Text: {person}" for person in PEOPLE for what in ("name, age", "city")]
LIMIT = 16
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SPECS = {
    "words": GrammarSpec(GrammarKind.REGEX, "([a-z]{2,6} ){3,5}(end|age)"),
    "an object, much of which is forced": GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(PERSON)),
    "brackets in brackets": GrammarSpec(GrammarKind.EBNF, 'root ::= "[" (word | root) (", " (word | root))* "]"\nword ::= [a-z]{2,6}'),
}
MOSTLY_FORCED = GrammarSpec(GrammarKind.REGEX, "(Ada|Omar) lives in a city, and the number of (cats|dogs) is not known to anybody")
NEAR_TIE = 1e-4


@cache
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(SETTINGS.model)


def text_of(tokens: Sequence[int]) -> str:
    return str(tokenizer().decode([token for token in tokens if token != END], skip_special_tokens=True))


def reward_of(asked: dict[str, Any]) -> AtOnce:
    def no_grammar(number: int) -> CompiledGrammar:
        raise AssertionError(number)

    return AtOnce(built(parsed(asked["reward"]), Sources(no_grammar, (), {}, asyncio.to_thread)))


class Masked:
    """A model among what a grammar allows after a prompt of that many tokens: what it forces is said in the tokenizer's own tokens."""

    def __init__(self, model: TorchModel, spec: GrammarSpec, prompt: int) -> None:
        self._model = model
        self._grammar = _grammar(spec)
        self._segmenter = Segmenter(GrammarTokenizer.load(SETTINGS.model))
        self._prompt = prompt

    def logits(self, text: Sequence[int]) -> NDArray[np.float32]:
        """-inf where a token is forbidden, or another one is forced."""
        said = text[self._prompt :]
        matcher = self._grammar.matcher([END], 0)
        assert all(map(matcher.accept, said))
        if forced := self._segmenter.find(matcher, said).tokens:
            allowed = np.arange(VOCABULARY) == forced[0]
        else:
            mask = torch.full((1, VOCABULARY // 32), -1, dtype=torch.int32)
            matcher.fill(mask, 0)
            allowed = np.unpackbits(mask.numpy().view(np.uint8), bitorder="little").astype(bool)
        masked: NDArray[np.float32] = np.where(allowed, self._model.logits(text), -np.inf).astype(np.float32)
        return masked

    def rows(self, text: Sequence[int], last: int) -> NDArray[np.float32]:
        """Log-probabilities among what is allowed, float32 `[last, V]`, after each of the last tokens."""
        logits = np.array([self.logits(text[: len(text) - behind]) for behind in reversed(range(last))])
        return np.asarray(torch.from_numpy(logits).log_softmax(-1).numpy(), dtype=np.float32)

    def greedy(self, text: Sequence[int], length: int) -> tuple[int, ...]:
        said: tuple[int, ...] = ()
        while len(said) < length and END not in said:
            said = (*said, int(self.logits((*text, *said)).argmax()))
        return said


def allows(spec: GrammarSpec, text: Sequence[int]) -> bool:
    """Whether a grammar allows all of an answer's tokens, in turn."""
    return all(map(_grammar(spec).matcher([END], 0).accept, text))


@cache
def _grammar(spec: GrammarSpec) -> CompiledGrammar:
    vocabulary, backend = GrammarTokenizer.load(SETTINGS.model), backend_named("xgrammar")
    return backend.load(backend.compile(spec, vocabulary).data, vocabulary)


def reference(models: Sequence[TorchModel], asked: dict[str, Any], prompt: tuple[int, ...], spec: GrammarSpec | None = None) -> Reference:
    """`models`: the target, and what drafts for it, if that is another."""
    reward = reward_of(asked)
    target, draft = (model.logits if spec is None else Masked(model, spec, len(prompt)).logits for model in (models[0], models[-1]))
    sizes = {name: asked[name] for name in ("d", "k") if name in asked}
    return Reference(target, draft, prompt, lambda text: reward.score([text_of(text)])[0], LIMIT, frozenset({END}), **sizes)


def same(answer: Answer, expected: Reference, decoded: Callable[[Reference], tuple[int, ...]]) -> bool:
    """Whether the text is the algorithm's. Where it is another, two tokens were as likely near the place where it parts from that, or this
    raises AssertionError."""
    text = decoded(expected)
    if answer.tokens == text:
        return True
    shared = next((place for place, (one, other) in enumerate(zip(answer.tokens, text, strict=False)) if one != other), 0)
    near = [length for length, margin in expected.margins if margin < NEAR_TIE and shared - 2 <= length <= shared + 8]
    assert near, (answer.tokens, text)
    return False
