"""Which grammars the requests of a step have, and which masks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grammar_service.backends import Backend, CompiledGrammar, select_backend
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.corpus.cases import Case, read_cases
from load_tests.masks.walks import renamed
from model_service.artifact_channel import Payload

SCHEMAS = Path(__file__).resolve().parents[1] / "corpus" / "schemas"
NAMES = (
    *("booking", "contact_card", "curriculum_vitae", "expense_report", "invoice", "order", "person", "product_page", "support_ticket"),
    *("log_event", "patient", "observation", "firewall", "pipeline", "comment_thread", "tool_calls_20"),
)
ONE, SOME, ALL = "one schema", f"{len(NAMES)} schemas", "all different"


@dataclass(frozen=True, slots=True)
class Scenario:
    """`grammars`: one for each request. `schema`: the file's name where it is one schema, else empty."""

    name: str
    schema: str
    grammars: Sequence[CompiledGrammar]


class Compiler:
    """Compiles as a replica of the service would; keeps its backends, whose compilers stay warm."""

    def __init__(self, tokenizer: GrammarTokenizer) -> None:
        self._tokenizer = tokenizer
        self._backends: dict[str, Backend] = {}

    def grammar(self, case: Case, mark: str = "") -> CompiledGrammar:
        """See `compiled`."""
        return self.compiled(case, mark)[1]

    def compiled(self, case: Case, mark: str = "") -> tuple[Payload, CompiledGrammar]:
        """`mark` makes another grammar of the case, see `renamed`."""
        spec = replace(case.spec, text=json.dumps(renamed(json.loads(case.spec.text), mark))) if mark else case.spec
        chosen = select_backend(spec)
        backend = self._backends.setdefault(chosen.name, chosen)
        payload = Payload(backend.name, backend.compile(spec, self._tokenizer).data)
        return payload, backend.load(payload.data, self._tokenizer)


def chosen_cases() -> list[Case]:
    """The schemas of `NAMES`: records of everyday work, with texts, numbers, patterns, lists and choices."""
    return [case for case in read_cases(SCHEMAS) if case.name.partition("-")[2].removesuffix(".json") in NAMES]


def scenarios(cases: Sequence[Case], requests: int, compiler: Compiler) -> Iterator[Scenario]:
    """Every schema alone; all of them in turn; and in turn with other names for every request."""
    plain = [compiler.grammar(case) for case in cases]
    for case, grammar in zip(cases, plain, strict=True):
        yield Scenario(ONE, case.name, [grammar] * requests)
    yield Scenario(SOME, "", [plain[number % len(plain)] for number in range(requests)])
    yield Scenario(ALL, "", [compiler.grammar(cases[number % len(cases)], f"_{number}") for number in range(requests)])


def ahead(walk: Sequence[Sequence[int]], step: int, drafts: int) -> Sequence[int]:
    """A request's masks at a step: for its next token, and behind each draft; nothing follows the end of an answer."""
    for answer in walk:
        if step < len(answer):
            return answer[step : step + drafts + 1]
        step -= len(answer)
    return []
