from __future__ import annotations

from pathlib import Path

import pytest

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.tokenizers.tiny_tokenizer import STOP_ID, VOCAB_SIZE, save_tiny_model, tiny_tokenizer


def test_loading_from_a_folder_is_the_same_as_from_memory(tmp_path: Path, tokenizer: GrammarTokenizer) -> None:
    loaded = GrammarTokenizer.load(save_tiny_model(tmp_path))
    assert loaded.vocab_size == VOCAB_SIZE
    assert loaded.stop_token_ids == (STOP_ID,)
    assert loaded.fingerprint == tokenizer.fingerprint


def test_both_libraries_see_one_vocabulary(tokenizer: GrammarTokenizer) -> None:
    assert tokenizer.xgrammar.vocab_size == tokenizer.llguidance.vocab_size == VOCAB_SIZE
    texts = tokenizer.xgrammar.decoded_vocab
    # llguidance marks special tokens by the byte 0xFF, which no UTF-8 text holds, and cannot show it.
    shared = [token for token in range(4, 270) if texts[token] != b"\xff"]
    assert [texts[token] for token in shared] == [tokenizer.llguidance.decode_bytes([token]) for token in shared]


def test_order_of_tokens_size_and_stop_token_change_the_fingerprint(tokenizer: GrammarTokenizer) -> None:
    swapped = tiny_tokenizer()
    swapped.add_tokens(["zz"])
    other_stop = tiny_tokenizer()
    other_stop.eos_token = "<|other_end|>"
    prints = {
        tokenizer.fingerprint,
        GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE + 1).fingerprint,
        GrammarTokenizer.from_huggingface(swapped, VOCAB_SIZE).fingerprint,
        GrammarTokenizer.from_huggingface(other_stop, VOCAB_SIZE).fingerprint,
    }
    assert len(prints) == 4


def test_a_tokenizer_without_an_end_is_refused() -> None:
    endless = tiny_tokenizer()
    endless.eos_token = None
    with pytest.raises(ValueError, match="end-of-sequence"):
        GrammarTokenizer.from_huggingface(endless)
