"""Compiled grammars to be offered on an artifact channel (`load_tests.masks.offered`)."""

from __future__ import annotations

from grammar_service.backends import backend_named
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.masks.offered import offered
from model_service.artifact_channel import Payload

__all__ = ["offered", "payload_of"]


def payload_of(spec: GrammarSpec, tokenizer: GrammarTokenizer, backend: str) -> Payload:
    return Payload(backend, backend_named(backend).compile(spec, tokenizer).data)
