"""What a grammar says of its memory is about what it holds: an engine that keeps thousands goes by it."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
import pytest
import torch

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import CompiledGrammar, backend_named
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.soak.schemas import schema
from tests.driving import schema_spec

GRAMMARS, ANSWERS, TOKENS = 12, 4, 60


class MallocInfo(ctypes.Structure):
    """`struct mallinfo2` of malloc.h."""

    names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in names]


@pytest.fixture(scope="module")
def libc() -> Any:
    found = ctypes.CDLL(None)
    if not hasattr(found, "mallinfo2"):
        pytest.skip("this C library does not tell what it has handed out")
    found.mallinfo2.restype = MallocInfo
    return found


@pytest.mark.parametrize("backend", ["llguidance", "xgrammar"])
def test_memory_is_about_what_is_held_after_some_answers(libc: Any, backend: str) -> None:
    tokenizer, loading = GrammarTokenizer.load(EMBEDDED_WEIGHTS), backend_named(backend)
    specs = [schema_spec(schema(number)) for number in range(4 * GRAMMARS)]
    payloads = [loading.compile(spec, tokenizer).data for spec in specs if not loading.unsupported(spec)][:GRAMMARS]
    walk(loading.load(payloads[0], tokenizer), tokenizer, 0)  # what is made once a tokenizer
    before = handed_out(libc)
    grammars = [loading.load(payload, tokenizer) for payload in payloads]
    for seed in range(ANSWERS):
        for grammar in grammars:
            walk(grammar, tokenizer, seed)
    held = handed_out(libc) - before
    assert len(grammars) == GRAMMARS
    assert 0.5 < sum(grammar.size_bytes for grammar in grammars) / held < 2


def handed_out(libc: Any) -> int:
    info = libc.mallinfo2()
    return int(info.uordblks + info.hblkhd)


def walk(grammar: CompiledGrammar, tokenizer: GrammarTokenizer, seed: int) -> None:
    """Any answer."""
    matcher, choose = grammar.matcher(None, 0), random.Random(seed)
    row = torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)
    for _ in range(TOKENS):
        matcher.fill(row, 0)
        token = choose.choice(np.flatnonzero(np.unpackbits(row.numpy().view(np.uint8), bitorder="little")))
        if token in tokenizer.stop_token_ids or not matcher.accept(int(token)):
            return
