"""How constraints are read whose request does not choose."""

from __future__ import annotations

from dataclasses import dataclass

from deployments.config import GrammarSettings
from grammar_service.spec import STANDARD

WARN, REFUSE = "warn", "refuse"
ENFORCE, ANNOTATE = "enforce", "annotate"


@dataclass(frozen=True, slots=True)
class ConstraintDefaults:
    """`whitespace`, `closed`, `refuses_unknown` and `formats` as in `GrammarSpec`."""

    whitespace: str = STANDARD
    closed: bool = True
    refuses_unknown: bool = False
    formats: bool = True

    @classmethod
    def of(cls, settings: GrammarSettings) -> ConstraintDefaults:
        unknown, formats = settings.unknown_keywords == REFUSE, settings.format == ENFORCE
        return cls(settings.whitespace, settings.disable_additional_properties, unknown, formats)
