"""Requests in the middle of their answers, for the benchmark of the mask path."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from grammar_service.backends import CompiledGrammar
from grammar_service.backends.guarded import Guarded
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.corpus.cases import Case
from load_tests.masks.scenarios import ALL, ONE, Compiler
from load_tests.masks.walks import SeenRows, Typist
from model_service.artifact_channel import Payload

ONE_SCHEMA = "business-booking"
"""Without guards: stock vLLM must be able to mask it too."""
LONGEST_SKIP = 96
TRIES = 50


@dataclass(frozen=True, slots=True)
class MaskRequest:
    """`key`: of its grammar; `tokens`: of its answer, of which `skip` are behind it at the first step."""

    request_id: str
    key: str
    grammar: CompiledGrammar
    tokens: Sequence[int]
    skip: int

    def drafts(self, step: int, count: int) -> list[int]:
        return list(self.tokens[self.skip + step : self.skip + step + count])

    def accepted(self, step: int) -> list[int]:
        return self.drafts(step, 1)


class Grammars:
    """By key, each compiled by the backend that serves it, whose library both arms fill with; `payloads` as a replica offers them."""

    def __init__(self, tokenizer: GrammarTokenizer) -> None:
        self._compiler = Compiler(tokenizer)
        self.payloads: dict[str, Payload] = {}
        self._loaded: dict[str, CompiledGrammar] = {}

    def get(self, case: Case, mark: str = "") -> tuple[str, CompiledGrammar]:
        key = case.name + mark
        if key not in self._loaded:
            self.payloads[key], self._loaded[key] = self._compiler.compiled(case, mark)
        return key, self._loaded[key]


class RequestMaker:
    """`steps`: tokens that an answer has left at the least."""

    def __init__(self, tokenizer: GrammarTokenizer, cases: Sequence[Case], steps: int, seed: int) -> None:
        self.grammars = Grammars(tokenizer)
        # The others have what no library can say: stock vLLM has no masks for them.
        self._cases = [case for case in cases if not isinstance(self.grammars.get(case)[1].matcher(None, 0), Guarded)]
        self._chance = Random(seed)
        texts = [json.dumps(json.loads(case.spec.text)) for case in cases]
        self._typist = Typist(tokenizer, texts, SeenRows(tokenizer.vocab_size), self._chance)
        self._steps = steps

    def make(self, scenario: str, count: int) -> list[MaskRequest]:
        return [self._request(f"{scenario}-{number}", *self._grammar(scenario, number)) for number in range(count)]

    def _grammar(self, scenario: str, number: int) -> tuple[str, CompiledGrammar]:
        if scenario == ONE:
            (case,) = [case for case in self._cases if case.name.startswith(ONE_SCHEMA)]
            return self.grammars.get(case)
        case = self._cases[number % len(self._cases)]
        return self.grammars.get(case, f"_{number}" if scenario == ALL else "")

    def _request(self, request_id: str, key: str, grammar: CompiledGrammar) -> MaskRequest:
        for _ in range(TRIES):
            tokens = self._typist.answer(grammar, LONGEST_SKIP + self._steps)
            if len(tokens) >= self._steps:
                break
        skip = self._chance.randrange(max(1, len(tokens) - self._steps))
        return MaskRequest(request_id, key, grammar, tokens, skip)
