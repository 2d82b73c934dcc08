"""Long bounded strings take many states of the lexer, which all answers of a grammar share."""

from __future__ import annotations

import torch

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends.selection import select_backend
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import schema_spec

LONGEST = 8000


def test_one_is_written_to_its_end_and_the_grammar_serves_the_next_one() -> None:
    tokenizer = GrammarTokenizer.load(EMBEDDED_WEIGHTS)
    body = {"type": "string", "maxLength": LONGEST}
    spec = schema_spec({"type": "object", "properties": {"body": body}, "required": ["body"], "additionalProperties": False})
    backend = select_backend(spec)
    assert backend.name == "llguidance"
    grammar = backend.load(backend.compile(spec, tokenizer).data, tokenizer)
    tokens = {bytes([byte]): tokenizer.vocabulary.index(bytes([byte])) for byte in b'{"body:} '}
    mask = torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)
    for text in (b"body " * (LONGEST // 5), b"body"):
        matcher = grammar.matcher(None, 0)
        for byte in b'{"body": "' + text + b'"}':
            matcher.fill(mask, 0)
            assert matcher.accept(tokens[bytes([byte])])
        assert matcher.accept(tokenizer.stop_token_ids[0])
