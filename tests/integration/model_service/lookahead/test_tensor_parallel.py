"""Two tensor parallel workers verify and look ahead as one does, with a draft model that has two of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from model_service.settings import DraftSettings
from tests.integration.model_service.lookahead.asking import Asking, prompt_of
from tests.integration.model_service.lookahead.expected import LIMIT, QUESTIONS, SPECS, Masked, allows, reference, same
from tests.integration.model_service.lookahead.test_drafted import APPX, METHODS, Decoded
from tests.integration.model_service.lookahead.test_verification import check, wrong
from tests.integration.model_service.lookahead.torch_model import TorchModel
from tests.integration.model_service.running_engine import RunningEngine, running_engine
from tests.unit.model_service.lookahead.reference import Reference

SEATS = 12
MASKED = next(iter(SPECS.values()))
ALL_METHODS: dict[str, tuple[dict[str, Any], Decoded]] = {"cdlh": ({**APPX, "method": "cdlh"}, Reference.cdlh), **METHODS}


@pytest.fixture(scope="module")
def parallel(draft_folder: Path) -> Iterator[RunningEngine]:
    draft = DraftSettings(str(draft_folder))
    with running_engine(lookahead=True, draft=draft, tensor_parallel_size=2, is_alone=False, max_num_seqs=SEATS) as engine:
        yield engine


def test_what_workers_share_has_no_name_that_could_outlive_them(parallel: RunningEngine) -> None:
    """Only where vLLM shares any: its kernels for it take AVX-512."""
    workers = (child for child in psutil.Process().children(recursive=True) if "VLLM::Worker" in " ".join(child.cmdline()))
    mapped = [line for worker in workers for line in Path(f"/proc/{worker.pid}/maps").read_text().splitlines() if "cpushm" in line]
    assert mapped or "avx512f" not in Path("/proc/cpuinfo").read_text()
    assert all(line.endswith("(deleted)") for line in mapped)


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


def test_a_step_may_have_more_masks_than_the_engine_has_seats(parallel: RunningEngine, torch_model: TorchModel) -> None:
    prompt = prompt_of(45, seed=4)
    masked = Masked(torch_model, MASKED, len(prompt))
    drafts = masked.greedy(prompt, 16)
    assert SEATS < len(drafts) == 16
    expected = masked.rows(prompt + drafts, 17)
    asking = Asking(parallel, prompt, MASKED)
    asking.verify((), drafts)
    before = parallel.engine.core
    check(asking.verify((), drafts), expected, drafts, 3)
    after = parallel.engine.core
    assert (after.steps - before.steps, after.mask_rows - before.mask_rows) == (1, 17)


@pytest.mark.parametrize(
    ("method", "constraint"),
    [*(("appx", name) for name in ("free", *SPECS)), *((name, next(iter(SPECS))) for name in ("cdlh", "cdsl", "cdsl that keeps drafts"))],
)
def test_answers_are_those_of_the_plain_loops(
    parallel: RunningEngine, torch_model: TorchModel, torch_draft: TorchModel, method: str, constraint: str
) -> None:
    """Each method, and one with each constraint: `test_drafted` has all of them on one worker."""
    spec = SPECS.get(constraint)
    asked, decoded = ALL_METHODS[method]
    answers = parallel.ask_all([(question, spec, {"max_tokens": LIMIT, "lookahead": asked}) for question in QUESTIONS[:4]])
    assert sum(same(answer, reference([torch_model, torch_draft], asked, answer.prompt, spec), decoded) for answer in answers) >= 3
    assert spec is None or all(allows(spec, answer.tokens) for answer in answers)
