"""The language of a spec as an automaton over bytes, where it is regular as it is written."""

from __future__ import annotations

from grammar_service.automata.byte_dfa import EFFORT, ByteDfa, of_choices, of_regex
from grammar_service.backends.choice import choices_of
from grammar_service.spec import GrammarKind, GrammarSpec


def language_of(spec: GrammarSpec, effort: int = EFFORT) -> ByteDfa | None:
    """That of a regex, in so many steps, or of a choice; None for other kinds. Raises GrammarError as `of_regex` and `of_choices`."""
    if spec.kind is GrammarKind.REGEX:
        return of_regex(spec.text, effort)
    return of_choices(choices_of(spec.text)) if spec.kind is GrammarKind.CHOICE else None
