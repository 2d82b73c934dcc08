"""Everyday schemas, tools, grammars, regexes and choices, as requests with `"canonical": true` bring them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from grammar_service.backends import CompiledGrammar, faults_in_the_way, select_backend
from grammar_service.spec import COMPACT, JSON_KINDS, STANDARD, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.probes import ROOT
from load_tests.corpus.cases import read_cases
from load_tests.corpus.languages import specs

_SCALE = "scale-"
"""Sizes of one schema, none of which is an everyday one."""


def everyday_specs(seed: int) -> Mapping[str, GrammarSpec]:
    """Those that are served; JSON in two layouts."""
    cases = [case for case in read_cases(ROOT / "load_tests" / "corpus" / "schemas") if not case.name.startswith(_SCALE)]
    found: dict[str, GrammarSpec] = {}
    for case in cases:
        for layout in (STANDARD, COMPACT) if case.spec.kind in JSON_KINDS else (STANDARD,):
            name = case.name.partition(".")[0]
            found[f"{name}, {layout}"] = replace(case.spec, whitespace=layout, canonical=True)
    found |= {name: replace(spec, canonical=True) for name, spec in specs(seed).items()}
    return {name: spec for name, spec in found.items() if not faults_in_the_way(spec)}


def loaded(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> CompiledGrammar:
    """By the backend that the service chooses. Raises GrammarError: it is refused."""
    backend = select_backend(spec)
    return backend.load(backend.compile(spec, tokenizer).data, tokenizer)
