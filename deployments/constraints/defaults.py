"""How constraints are read whose request does not choose."""

from __future__ import annotations

from dataclasses import dataclass

from deployments.config import GrammarSettings
from grammar_service.spec import STANDARD

WARN, REFUSE, CHECK = "warn", "refuse", "check"
ENFORCE, ANNOTATE = "enforce", "annotate"
DECLARED, ANY = "declared", "any"


@dataclass(frozen=True, slots=True)
class ConstraintDefaults:
    """`whitespace`, `closed`, `refuses_unknown`, `formats`, `canonical` and `any_order` as in `GrammarSpec`; `check`: what no backend
    enforces is checked in the end."""

    whitespace: str = STANDARD
    closed: bool = True
    refuses_unknown: bool = False
    formats: bool = True
    check: bool = False
    canonical: bool = False
    any_order: bool = False

    @classmethod
    def of(cls, settings: GrammarSettings) -> ConstraintDefaults:
        return cls(
            settings.whitespace,
            settings.disable_additional_properties,
            settings.unknown_keywords == REFUSE,
            settings.format == ENFORCE,
            settings.unenforceable == CHECK,
            settings.canonical,
            settings.property_order == ANY,
        )
