"""Two tensor parallel workers verify and look ahead as one does, with a draft model that has two of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grammar_service.spec import GrammarSpec
from model_service.settings import DraftSettings
from tests.integration.model_service.lookahead.asking import Asking, prompt_of
from tests.integration.model_service.lookahead.expected import LIMIT, QUESTIONS, SPECS, allows, reference, same
from tests.integration.model_service.lookahead.test_drafted import METHODS
from tests.integration.model_service.lookahead.test_verification import check, wrong
from tests.integration.model_service.lookahead.torch_model import TorchModel
from tests.integration.model_service.running_engine import RunningEngine, running_engine


@pytest.fixture(scope="module")
def parallel(draft_folder: Path) -> Iterator[RunningEngine]:
    draft = DraftSettings(str(draft_folder))
    with running_engine(lookahead=True, draft=draft, tensor_parallel_size=2, is_alone=False, max_num_seqs=16) as engine:
        yield engine


@pytest.mark.parametrize("phase", [1, 31, 32])
def test_rows_are_the_models_by_one_forward(parallel: RunningEngine, torch_model: TorchModel, phase: int) -> None:
    prompt = prompt_of(64 + phase)
    for number in (0, 1, 4, 16):
        drafts = torch_model.greedy(prompt, number)
        Asking(parallel, prompt).verify((), drafts)
        before = parallel.engine.core.steps
        check(Asking(parallel, prompt).verify((), drafts), torch_model.rows(prompt + drafts, number + 1), drafts, 3)
        assert parallel.engine.core.steps == before + 1
    failing = (drafts[0], wrong(drafts[1]), *drafts[2:])
    check(Asking(parallel, prompt).verify((), failing), torch_model.rows(prompt + failing, len(failing) + 1), failing, 3)


@pytest.mark.parametrize("spec", [None, *SPECS.values()], ids=["free", *SPECS])
@pytest.mark.parametrize("method", ["appx", "cdsl"])
def test_answers_are_those_of_the_plain_loops(
    parallel: RunningEngine, torch_model: TorchModel, torch_draft: TorchModel, method: str, spec: GrammarSpec | None
) -> None:
    asked, decoded = METHODS[method]
    answers = parallel.ask_all([(question, spec, {"max_tokens": LIMIT, "lookahead": asked}) for question in QUESTIONS[:4]])
    assert sum(same(answer, reference([torch_model, torch_draft], asked, answer.prompt, spec), decoded) for answer in answers) >= 3
    assert spec is None or all(allows(spec, answer.tokens) for answer in answers)
