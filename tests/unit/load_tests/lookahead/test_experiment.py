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

from load_tests.lookahead import stages
from load_tests.lookahead.arms import CDLH, CDSL, LOOKAHEADS, REUSING, Experiment, Outcome, Task
from load_tests.lookahead.beside_paper import HEADINGS as PAIRS
from load_tests.lookahead.beside_paper import draw, pairs
from load_tests.lookahead.concept_sets import concept_sets
from load_tests.lookahead.few_shot import behind_examples
from load_tests.lookahead.figures import GREEDY, as_loops, in_time, row, same_texts, targets
from load_tests.lookahead.models import TorchLanguage
from load_tests.lookahead.near_ties import Compared, Loop, compare, loops
from load_tests.lookahead.stages import Stages, room_in
from load_tests.lookahead.tables import HEADINGS, cells
from model_service.embedded.tokenizer import trained_on
from model_service.lookahead import Stop
from model_service.lookahead.instructions import Tokens
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
    expected = {arm.name: loops(experiment, arm) for arm in LOOKAHEADS}
    compared = [compare(expected[outcome.name], outcome.said) for outcome in looked]
    assert [found.wrong for found in compared] == [0] * len(LOOKAHEADS)
    assert all(found.equal for found in compared)
    rows = [row(experiment, outcome, 0.5) for outcome in (*experiment.plain(), *looked)]
    assert all(len(cells(one)) == len(HEADINGS) for one in rows)
    assert all(target.value is not None for target in (*targets(rows), *as_loops(compared)))
    assert all(target.holds for target in same_texts(looked, expected))
    ours, *papers = pairs(rows)
    assert len(papers) == 14
    assert all(len(pair.cells()) == len(PAIRS) for pair in (ours, *papers))
    draw(rows, tmp_path / "lookahead.png")
    assert (tmp_path / "lookahead.png").read_bytes().startswith(b"\x89PNG")
    of = {one["method"]: one for one in rows}
    assert ours.calls[-1] == (of[CDSL.name]["draft_calls"], of[CDSL.name]["target_calls"])
    assert ours.cdsl_speedup == of[CDLH.name]["p"] / of[CDSL.name]["p"]
    assert of[GREEDY]["p"] == 1
    assert of[CDLH.name]["draft_calls"] == 0
    assert of[CDLH.name]["hard"] >= of[GREEDY]["hard"]


def test_a_text_of_another_method_is_found_out(experiment: Experiment) -> None:
    shifted = [text[1:] for text in experiment.look_ahead(CDLH).said]
    found = compare(loops(experiment, CDSL), shifted)
    assert (found.texts, found.equal) == (3, 0)


@pytest.mark.parametrize(("near", "excused"), [([5], 0), ([6], 1), ([14], 1), ([15], 0), ([], 0)])
def test_a_text_that_parts_is_excused_by_a_near_tie_within_reach_and_by_no_other(near: list[int], excused: int) -> None:
    said = tuple(range(20))
    assert compare([Loop(said, near, 4)], [(*said[:10], 99, *said[11:])]) == Compared(1, 0, excused)
    assert compare([Loop(said, near, 4)], [said]) == Compared(1, 1, 0)


def test_a_text_that_reuse_changes_is_excused_by_a_near_tie_alone() -> None:
    said: list[Tokens] = [(1, 2, 3, 4)]
    looked = [Outcome(arm.name, said) for arm in LOOKAHEADS if arm is not CDSL_REUSED] + [Outcome(CDSL_REUSED.name, [(1, 2, 9, 9)])]
    for near, changed in (([3], 0), ([], 1)):
        found, excused = same_texts(looked, {arm.name: [Loop(said[0], near, 1)] for arm in REUSING})
        assert (found.value, excused.value) == (changed, 100 * (1 - changed) / len(REUSING))


def test_what_was_found_before_says_nothing_of_the_time_that_all_of_it_takes() -> None:
    assert in_time(12).holds
    assert not in_time(21).holds
    assert in_time(None).value is None


def test_prompts_behind_examples_begin_alike_and_end_as_they_did() -> None:
    sets = list(islice(concept_sets(5, held_out=True, least=3), 3))
    tokenizer = trained_on((one.sentence for one in sets), 320)
    for short, long in zip((Task(one, tokenizer) for one in sets), tasks := behind_examples(sets, tokenizer), strict=True):
        assert long.prompt[-len(short.prompt) :] == short.prompt
        assert long.words == short.words
    examples = [len(task.prompt) - len(Task(one, tokenizer).prompt) for task, one in zip(tasks, sets, strict=True)]
    assert examples == [20, 27, 34]
    assert len({task.prompt[:20] for task in tasks}) == 1


def test_greedy_texts_are_those_of_plain_loops_as_well(experiment: Experiment) -> None:
    assert [loop.said for loop in loops(experiment, None)] == experiment.plain()[0].said


def test_what_was_computed_is_not_computed_again(experiment: Experiment, tmp_path: Path) -> None:
    kept = Stages(tmp_path, experiment.tasks)
    first, expected = kept.outcome(experiment, CDSL), kept.loops(experiment, CDSL)
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


def test_what_other_code_has_found_is_left_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (source := tmp_path / "code").mkdir()
    (source / "machine.py").write_text("a = 1")
    monkeypatch.setattr(stages, "SOURCES", (source,))
    room = room_in(tmp_path)
    assert room == room_in(tmp_path)
    (source / "machine.py").write_text("a = 2")
    assert room != room_in(tmp_path)
