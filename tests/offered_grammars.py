"""Compiled grammars to be offered on an artifact channel (`load_tests.masks.offered`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from grammar_service.backends import backend_named
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.masks.offered import offered
from model_service.artifact_channel import Payload

__all__ = ["offered", "offered_specs", "payload_of"]


def payload_of(spec: GrammarSpec, tokenizer: GrammarTokenizer, backend: str) -> Payload:
    return Payload(backend, backend_named(backend).compile(spec, tokenizer).data)


@contextmanager
def offered_specs(specs: Mapping[str, GrammarSpec], tokenizer: GrammarTokenizer) -> Iterator[str]:
    """Compiled by xgrammar, each by its key; the name of the channel."""
    with offered({key: payload_of(spec, tokenizer, "xgrammar") for key, spec in specs.items()}) as name:
        yield name
