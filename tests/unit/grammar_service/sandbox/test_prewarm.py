from __future__ import annotations

import pytest

from grammar_service.backends import backend_named
from grammar_service.sandbox.prewarm import TYPICAL
from grammar_service.spec import COMPACT, GrammarSpec


@pytest.mark.parametrize("spec", TYPICAL, ids=lambda spec: f"{spec.kind} {spec.whitespace} {spec.text[:20]}")
def test_what_warms_the_compilers_up_is_enforced_by_both(spec: GrammarSpec) -> None:
    assert backend_named("llguidance").unsupported(spec) == []
    assert spec.whitespace == COMPACT or backend_named("xgrammar").unsupported(spec) == []
