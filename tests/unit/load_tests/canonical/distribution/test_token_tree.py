"""Many continuations in one pass, against one pass each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from load_tests.canonical.distribution.token_tree import Tokens, TokenTree

CONTEXT = [3, 1, 4, 1, 5]
SEQUENCES: list[Tokens] = [(7,), (7, 8), (7, 9), (10, 8), (10, 8, 7, 9)]


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "initializer_range": 0.3}
    return LlamaForCausalLM(LlamaConfig(vocab_size=16, max_position_embeddings=64, **sizes)).eval()


def alone(model: LlamaForCausalLM, sequence: Tokens) -> list[float]:
    with torch.inference_mode():
        logits = model(torch.tensor([[*CONTEXT, *sequence]])).logits[0, -1]
    return list(torch.softmax(logits.double(), -1).tolist())


def test_each_sequence_sees_the_context_and_its_own_beginning(model: LlamaForCausalLM) -> None:
    tree = TokenTree(model, CONTEXT)
    tree.read(SEQUENCES[:2])
    tree.read(SEQUENCES)
    for sequence in [(), *SEQUENCES, (10,), (10, 8, 7)]:
        assert tree[sequence] == pytest.approx(alone(model, sequence), abs=1e-5)
    assert np.abs(tree[7, 8] - tree[10, 8]).max() > 1e-3


def test_what_is_known_is_not_computed_again(model: LlamaForCausalLM) -> None:
    tree = TokenTree(model, CONTEXT)
    tree.read(SEQUENCES)
    count, before = len(tree), tree[7, 8]
    tree.read([(), *SEQUENCES])
    assert len(tree) == count
    assert tree[7, 8] is before
    with pytest.raises(KeyError):
        tree[1, 2]
