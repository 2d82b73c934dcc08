"""The last resolutions, within a size, each tenant's apart."""

from __future__ import annotations

from dataclasses import replace

from grammar_service.compiler.resolutions import MOST, Resolutions
from grammar_service.messages import Refusal
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution
from grammar_service.spec import GrammarKind, GrammarSpec

SPEC = GrammarSpec(GrammarKind.REGEX, "a" * 40)
ANSWER = Resolution(SPEC, "key", "xgrammar")


def test_only_what_was_asked_alike_is_the_same() -> None:
    known = Resolutions()
    known.keep(SPEC, "ada", Relax.NOTHING, ANSWER)
    assert known.get(SPEC, "ada", Relax.NOTHING) is ANSWER
    others = [(SPEC, "omar", Relax.NOTHING), (SPEC, "ada", Relax.UNENFORCED), (replace(SPEC, closed=False), "ada", Relax.NOTHING)]
    assert [known.get(*other) for other in others] == [None] * 3


def test_a_refusal_is_an_answer_too() -> None:
    known, refusal = Resolutions(), Refusal("unsupported_grammar", "no", "/a")
    known.keep(SPEC, "", Relax.NOTHING, refusal)
    assert known.get(SPEC, "", Relax.NOTHING) is refusal


def test_what_was_not_asked_for_lately_is_forgotten_first() -> None:
    known, specs = Resolutions(most_characters=100), [replace(SPEC, text=letter * 40) for letter in "abc"]
    for spec in specs[:2]:
        known.keep(spec, "", Relax.NOTHING, replace(ANSWER, spec=spec))
    assert known.get(specs[0], "", Relax.NOTHING) is not None
    known.keep(specs[2], "", Relax.NOTHING, replace(ANSWER, spec=specs[2]))
    assert [known.get(spec, "", Relax.NOTHING) is None for spec in specs] == [False, True, False]


def test_one_that_is_kept_again_is_counted_once() -> None:
    known, other = Resolutions(most_characters=100), replace(SPEC, text="b" * 40)
    known.keep(other, "", Relax.NOTHING, ANSWER)
    for _ in range(5):
        known.keep(SPEC, "", Relax.NOTHING, ANSWER)
    assert known.get(other, "", Relax.NOTHING) is ANSWER


def test_one_larger_than_all_is_not_kept() -> None:
    known = Resolutions(most_characters=10)
    known.keep(SPEC, "", Relax.NOTHING, ANSWER)
    assert known.get(SPEC, "", Relax.NOTHING) is None


def test_short_refusals_are_not_kept_without_end() -> None:
    known, refusal = Resolutions(), Refusal("unsupported_grammar", "no", "/a")
    specs = [replace(SPEC, text=str(number)) for number in range(MOST + 1)]
    for spec in specs:
        known.keep(spec, "", Relax.NOTHING, refusal)
    assert [known.get(spec, "", Relax.NOTHING) is None for spec in specs[:2]] == [True, False]
