"""Answers under canonical grammars, a few of each kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.conformance.suite import Case, Group
from grammar_service.schema.json_text import Json
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.answers.answering import Answering, tokens_of
from load_tests.canonical.answers.choosers import ADVERSARIAL, COMMON, NOWHERE, RANDOM, Choosers
from load_tests.canonical.answers.languages import everyday_specs, loaded
from load_tests.canonical.answers.never_stuck import counted
from load_tests.canonical.answers.step_rows import SeenMasks
from load_tests.canonical.answers.suite import Followed, followed, suite_rows
from load_tests.canonical.costs import NarrowMasks

NAMES = ("business-person, standard", "business-booking, compact", "recursive-any_json, standard", "date and time", "100 choices")
TEXTS = ['{"name": "Ada Lovelace", "age": 36, "born": "1815-12-10"}']


@pytest.fixture(scope="module")
def embedded() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)


@pytest.mark.parametrize("draws", [*RANDOM, *ADVERSARIAL])
def test_answers_never_get_stuck_and_are_the_tokenizers_own(draws: str, embedded: GrammarTokenizer) -> None:
    specs = everyday_specs(1)
    grammars = [loaded(specs[name], embedded) for name in NAMES]
    found = counted(grammars, Choosers(embedded, TEXTS, 1).by_name()[draws], Answering(embedded), embedded, 20)
    assert (found["stuck"], found["fell_back"], found["not_canonical"]) == (0, 0, 0)
    assert found["tried"] == 20
    assert found["ended"] > 10


def test_who_wants_to_get_stuck_is_dropped_again_and_again(embedded: GrammarTokenizer) -> None:
    grammar = loaded(everyday_specs(1)["business-booking, compact"], embedded)
    found = counted([grammar], Choosers(embedded, TEXTS, 1).by_name()[NOWHERE], Answering(embedded), embedded, 5)
    assert found["redrawn"]


def test_an_answer_that_is_cut_otherwise_is_counted(embedded: GrammarTokenizer) -> None:
    """A plain grammar, drawn letter by letter."""
    grammar = loaded(GrammarSpec(GrammarKind.REGEX, "[a-z ]{7}"), embedded)
    letters = [embedded.vocabulary.index(b"%c" % byte) for byte in b"the end"]
    found = counted([grammar], lambda _, allowed, draws: letters[draws], Answering(embedded), embedded, 1)
    assert (found["ended"], found["not_canonical"]) == (1, 1)


def test_a_mask_has_the_tokens_whose_bits_are_set() -> None:
    wanted = sorted(Random(1).sample(range(320), 40))
    mask = np.zeros(10, np.int32)
    for token in wanted:
        mask.view(np.uint32)[token >> 5] |= np.uint32(1 << (token & 31))
    assert tokens_of(mask).tolist() == wanted


def test_canonical_grammars_follow_the_valid_instances_of_a_suite(embedded: GrammarTokenizer) -> None:
    """Those that the plain one takes: it writes no escapes, and members in order."""
    schema: Json = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}
    listed: list[tuple[Json, bool]] = [({"a": "né"}, True), ({"b": 1, "a": "x"}, True), ({"b": 1}, False)]
    cases = tuple(Case("", instance, valid) for instance, valid in listed)
    assert followed(Group("object", "", schema, cases), embedded, Answering(embedded)) == Followed(True, 1, 0)
    refused: Json = {"contains": {"const": 1}, "uniqueItems": True}
    assert followed(Group("object", "", refused, cases), embedded, Answering(embedded)) == Followed()


def test_a_sequence_that_is_not_the_tokenizers_own_is_not_followed(embedded: GrammarTokenizer) -> None:
    spec = GrammarSpec(GrammarKind.CHOICE, '["the end", "the endless"]', canonical=True)
    letters = [embedded.vocabulary.index(b"%c" % byte) for byte in b"the end"]
    answering = Answering(embedded)
    assert answering.follows(loaded(spec, embedded), embedded.encode("the end"))
    assert not answering.follows(loaded(spec, embedded), letters)
    assert answering.follows(loaded(replace(spec, canonical=False), embedded), letters)


def test_without_a_folder_the_suite_is_left_out(embedded: GrammarTokenizer, tmp_path: Path) -> None:
    (row,) = suite_rows(None, embedded)
    assert "--suite" in row["left_out"]
    (tmp_path / "type.json").write_text('[{"schema": {"type": "null"}, "tests": [{"data": null, "valid": true}]}]', encoding="utf-8")
    (row,) = suite_rows(tmp_path, embedded)
    assert (row["schemas"], row["served"], row["lost"], row["texts"], row["refused"]) == (1, 1, 0, 1, 0)


def test_masks_are_looked_at_beside_an_answer(embedded: GrammarTokenizer) -> None:
    """The canonical ones are not the grammar's, narrow ones are timed, and the answer is the same."""
    grammar = loaded(everyday_specs(1)["business-person, standard"], embedded)
    seen, narrow = SeenMasks(embedded.vocab_size), NarrowMasks(embedded.vocab_size)
    watches = (None, seen.look, narrow.look)
    answers = [Answering(embedded).answer(grammar, Choosers(embedded, TEXTS, 2).by_name()[COMMON], watch) for watch in watches]
    assert answers[0] == answers[1] == answers[2]
    assert len(seen.found) == answers[0].draws
    assert any(plain != own for plain, own in seen.found)
    assert len(narrow.spent) == len(narrow.tokens) > 0
    assert all(1 < count <= 64 for count in narrow.tokens)
