"""Rows of a verification are told only where its grammar has masked them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs
from vllm.v1.outputs import LogprobsLists

from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.core.backend import KeyedGrammar
from model_service.engine.core.lookahead.verifying import Verifying
from model_service.engine.verification import VERIFIED
from tests.driving import grammar_of, ids_of
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

COMPILED = grammar_of(GrammarSpec(GrammarKind.REGEX, "ab"), GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE))
ROWS = LogprobsLists(np.zeros((1, 2), np.int32), np.zeros((1, 2), np.float32), np.zeros(1, np.int32))


def test_rows_of_a_grammar_that_has_failed_are_left_out() -> None:
    verifying, grammars = Verifying(SimpleNamespace(), {}), [KeyedGrammar(COMPILED.matcher(None, 0)) for _ in range(2)]
    assert not grammars[1].advance_ahead(ids_of("b"))
    for name, grammar in zip(("sound", "failed"), grammars, strict=True):
        asked: Any = SimpleNamespace(request_id=name, structured_output_request=SimpleNamespace(grammar=grammar))
        verifying.check_masks(asked)
    outputs = [EngineCoreOutput(request_id=name, new_token_ids=[1]) for name in ("sound", "failed")]
    computed: Any = SimpleNamespace(**{VERIFIED: {"sound": ROWS, "failed": ROWS}})
    verifying.answer({0: EngineCoreOutputs(outputs=outputs)}, computed)
    assert [output.new_logprobs is ROWS for output in outputs] == [True, False]
    assert outputs[1].new_logprobs is None
    verifying.answer({0: EngineCoreOutputs(outputs=outputs)}, computed)
    assert outputs[1].new_logprobs is ROWS
