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


def test_short_refusals_are_not_kept_without_end() -> None:
    known, refusal = Resolutions(), Refusal("unsupported_grammar", "no", "/a")
    specs = [replace(SPEC, text=str(number)) for number in range(MOST + 1)]
    for spec in specs:
        known.keep(spec, "", Relax.NOTHING, refusal)
    assert [known.get(spec, "", Relax.NOTHING) is None for spec in specs[:2]] == [True, False]
