"""A grammar whose masks take long behind a door that its compiler did not find ends its own requests, and nobody else's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.integration.model_service.running_engine import RunningEngine

HIDDEN = GrammarSpec(GrammarKind.EBNF, 'root ::= "qz" e "#" | [a-p] [a-z]*\ne ::= e e | l\nl ::= [a-z] | "(" l ")"')
EASY = GrammarSpec(GrammarKind.REGEX, "[a-z]{40}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("canonical", [False, True])
def test_it_ends_its_own_requests_alone(jumping: RunningEngine, canonical: bool) -> None:
    hidden = replace(HIDDEN, canonical=canonical)
    bias = {str(GrammarTokenizer.load(EMBEDDED_WEIGHTS).vocabulary.index(b"q")): 100}
    with ThreadPoolExecutor() as threads:
        others = [threads.submit(jumping.ask, "Spell.", EASY, max_tokens=60) for _ in range(4)]
        streamed = jumping.events("Spell.", hidden, max_tokens=400, logit_bias=bias)
        whole = jumping.body("Spell.", hidden, max_tokens=400, logit_bias=bias)
        for other in others:
            assert (other.result().finish_reason, len(other.result().text)) == ("stop", 40)
    assert "masks of its grammar" in streamed[-1]["error"]["message"]
    assert len(streamed) < 200
    assert "masks of its grammar" in whole["error"]["message"]


@pytest.mark.timeout(300)
def test_masks_that_are_made_while_forced_text_is_looked_for_count_as_well(jumping: RunningEngine) -> None:
    """llguidance keeps them: the mask behind them takes no time."""
    tokenizer = GrammarTokenizer.load(EMBEDDED_WEIGHTS)
    bias = {str(tokenizer.vocabulary.index(b"q")): 100} | {str(stop): -100 for stop in tokenizer.stop_token_ids}
    hidden = GrammarSpec(GrammarKind.LARK, 'start: "qz" s | /[a-p][a-z]*/\ns: /[a-z]/ | s s')
    whole = jumping.body("Spell.", hidden, max_tokens=900, logit_bias=bias)
    assert "masks of its grammar" in whole["error"]["message"]
