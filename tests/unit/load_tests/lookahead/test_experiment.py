"""The experiment from end to end, with models that have learned nothing: texts are the reference's, and every figure is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from load_tests.lookahead.arms import CDLH, CDSL, LOOKAHEADS, REUSING, Experiment, Task
from load_tests.lookahead.beside_paper import HEADINGS as PAIRS
from load_tests.lookahead.beside_paper import draw, pairs
from load_tests.lookahead.concept_sets import concept_sets
from load_tests.lookahead.figures import as_loops, row, same_texts, targets
from load_tests.lookahead.models import TorchLanguage
from load_tests.lookahead.near_ties import Compared, Loop, compare, loops
from load_tests.lookahead.stages import Stages
from load_tests.lookahead.tables import HEADINGS, cells
from model_service.embedded.tokenizer import trained_on
from model_service.lookahead import Stop
from tests.one_thread import one_thread

CDSL_REUSED = REUSING[-1]


def untrained(tokenizer: PreTrainedTokenizerFast, seed: int, like: LlamaForCausalLM | None = None) -> LlamaForCausalLM:
    """A model of random weights; `like`: near to that one."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.5,
    )
    model = LlamaForCausalLM(config).eval()
    if like is not None:
        with torch.no_grad():
            for own, others in zip(model.parameters(), like.parameters(), strict=True):
                own.copy_(others + 0.05 * own)
    return model


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    with one_thread():
        yield


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    sets = list(islice(concept_sets(5, held_out=True, least=3), 3))
    tokenizer = trained_on((one.sentence for one in islice(concept_sets(6, held_out=False), 500)), 320)
    target = untrained(tokenizer, 1)
    models = TorchLanguage(target), TorchLanguage(untrained(tokenizer, 2, like=target))
    return Experiment(*models, [Task(one, tokenizer) for one in sets], Stop(8, frozenset({int(tokenizer.eos_token_id)})))


def test_every_text_is_that_of_plain_loops_and_every_figure_is_told(experiment: Experiment, tmp_path: Path) -> None:
    looked = [experiment.look_ahead(arm) for arm in LOOKAHEADS]
    compared = [compare(loops(experiment, arm), outcome.said) for arm, outcome in zip(LOOKAHEADS, looked, strict=True)]
    assert [found.wrong for found in compared] == [0] * len(LOOKAHEADS)
    assert all(found.equal for found in compared)
    rows = [row(experiment, outcome, 0.5) for outcome in (*experiment.plain(), *looked)]
    assert all(len(cells(one)) == len(HEADINGS) for one in rows)
    assert all(target.value is not None for target in (*targets(rows), same_texts(looked), *as_loops(compared)))
    ours, *papers = pairs(rows)
    assert len(papers) == 14
    assert all(len(pair.cells()) == len(PAIRS) for pair in (ours, *papers))
    draw(rows, tmp_path / "lookahead.png")
    assert (tmp_path / "lookahead.png").read_bytes().startswith(b"\x89PNG")
    of = {one["method"]: one for one in rows}
    assert ours.cdsl_speedup == of[CDLH.name]["p"] / of[CDSL.name]["p"]
    assert of["greedy"]["p"] == 1
    assert of[CDLH.name]["draft_calls"] == 0
    assert of[CDLH.name]["hard"] >= of["greedy"]["hard"]


def test_a_text_of_another_method_is_found_out(experiment: Experiment) -> None:
    shifted = [text[1:] for text in experiment.look_ahead(CDLH).said]
    found = compare(loops(experiment, CDSL), shifted)
    assert (found.texts, found.equal) == (3, 0)


def test_a_text_that_parts_is_excused_by_a_near_tie_that_its_look_aheads_reach_and_by_no_other() -> None:
    said = (1, 2, 3, 4)
    assert compare([Loop(said, [6], 4)], [(1, 2, 9, 9)]) == Compared(1, 0, 1)
    assert compare([Loop(said, [7], 4)], [(1, 2, 9, 9)]).wrong == 1
    assert compare([Loop(said, [], 4)], [said]) == Compared(1, 1, 0)


def test_greedy_texts_are_those_of_plain_loops_as_well(experiment: Experiment) -> None:
    assert [loop.said for loop in loops(experiment, None)] == experiment.plain()[0].said


def test_what_was_computed_is_not_computed_again(experiment: Experiment, tmp_path: Path) -> None:
    stages = Stages(tmp_path, experiment.tasks)
    first, expected = stages.outcome(experiment, CDSL), stages.loops(experiment, CDSL)
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"] * 2

    def none_is_asked(*_: object) -> NoReturn:
        raise AssertionError

    silent = SimpleNamespace(logits=none_is_asked)
    idle = replace(experiment, target=silent, draft=silent)
    again = Stages(tmp_path, experiment.tasks)
    assert again.outcome(idle, CDSL) == first
    assert again.loops(idle, CDSL_REUSED) == expected
    for other in (lambda: again.outcome(idle, CDLH), lambda: again.loops(idle, None), lambda: again.outcome(idle, CDSL_REUSED)):
        with pytest.raises(AssertionError):
            other()
