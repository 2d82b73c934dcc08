"""The automaton accepts what the tokenizer makes of texts, and nothing else. More of this: `python -m load_tests.canonical`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from grammar_service.canonical.automaton import CanonicalAutomaton, State
from grammar_service.canonical.packed_rows import PackedRows, packed
from grammar_service.canonical.tokenizer_rules import rules_of
from grammar_service.errors import UnsupportedGrammar
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.encoders.trained import PATTERNS, trained_tokenizer
from load_tests.canonical.probes import Probes
from tests.tokenizers.tiny_tokenizer import tiny_tokenizer

TEXTS = [
    "It's what they'll do: 12, 3.5 and\n\n  more   of it.\r\n\tnaïve café — 東京 🎉 don't\u00a0stop  ",
    json.dumps({"name": "Ada", "tags": ["a", "b"], "total": 12.5, "note": None}, indent=2),
    "def f(x):\n    return x ** 2  # ½ of it\n",
]
ADDED = {"id": 280, "content": "<x>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}


def probes(tokenizer: GrammarTokenizer) -> Probes:
    return Probes(tokenizer, tokenizer.canonical, TEXTS, seed=5)


@pytest.mark.parametrize("name", ["embedded", *PATTERNS])
def test_it_is_the_encoder(name: str, embedded: GrammarTokenizer) -> None:
    of = probes(embedded if name == "embedded" else trained_tokenizer(name))
    assert not of.texts().wrong
    sequences = of.sequences(1500)
    assert not sequences.wrong
    assert 150 < sequences.canonical < sequences.tried - 150


@pytest.mark.parametrize("name", ["embedded", "llama3"])
def test_rows_are_what_the_encoder_may_go_on_by(name: str, embedded: GrammarTokenizer) -> None:
    rows = probes(embedded if name == "embedded" else trained_tokenizer(name)).rows(80)
    assert not rows.wrong
    assert rows.canonical


def walked(automaton: CanonicalAutomaton, tokens: list[int]) -> State | None:
    state: State | None = automaton.start
    for token in tokens:
        state = None if state is None else automaton.after(state, token)
    return state


def test_states_are_values(embedded: GrammarTokenizer) -> None:
    automaton = embedded.canonical
    tokens = embedded.encode("one two")
    assert walked(automaton, tokens) == walked(automaton, tokens)
    assert automaton.accepts(tokens)


def test_an_added_token_is_a_boundary_and_nothing_else_spells_it(embedded: GrammarTokenizer) -> None:
    automaton = embedded.canonical
    text = "so <tool_call>{} </tool_call> end"
    tokens = embedded.encode(text)
    call = embedded.encode("<tool_call>")
    assert len(call) == 1
    assert call[0] in tokens
    assert automaton.accepts(tokens)
    byte_ids = {text: token for token, text in enumerate(embedded.vocabulary) if len(text) == 1}
    assert not automaton.accepts([byte_ids[bytes([byte])] for byte in b"<tool_call>"])
    spelled = [*embedded.encode("<tool"), *embedded.encode("_call"), *embedded.encode(">")]
    assert walked(automaton, spelled[:-1]) is not None
    assert walked(automaton, spelled) is None


def test_special_tokens_and_ids_without_text_never_come(embedded: GrammarTokenizer) -> None:
    automaton = embedded.canonical
    assert automaton.after(automaton.start, embedded.stop_token_ids[0]) is None
    assert not automaton.row(automaton.start)[0] & 0b11111


@pytest.mark.parametrize("name", ["embedded", "o200k"])
def test_rows_agree_with_what_is_behind_each_token(name: str, embedded: GrammarTokenizer) -> None:
    """Also inside of characters."""
    tokenizer = embedded if name == "embedded" else trained_tokenizer(name)
    automaton = tokenizer.canonical
    dragon = tokenizer.encode("龍")
    assert len(dragon) > 1
    for tokens in ([], dragon[:1], [*tokenizer.encode("a "), *dragon[:1]], tokenizer.encode("it's 12"), tokenizer.encode("x <too")):
        state = walked(automaton, tokens)
        assert state is not None
        bits = np.unpackbits(automaton.row(state).view(np.uint8), bitorder="little")
        for token in range(tokenizer.vocab_size):
            assert bits[token] == (automaton.after(state, token) is not None)


def test_the_end_of_a_text_can_be_too_early() -> None:
    """`\\s+(?!\\S)` leaves the last blank to the word behind it, and keeps it where none comes."""
    tokenizer = trained_tokenizer("gpt2")
    automaton = tokenizer.canonical
    space = tokenizer.encode(" ")[0]
    assert tokenizer.encode("  ") != [space, space]
    state = walked(automaton, [space, space]) or walked(automaton, [*tokenizer.encode("a"), space, space])
    assert state is None or not automaton.may_end(state)


def refused(change: dict[str, object], model: dict[str, object] | None = None) -> None:
    written = json.loads(tiny_tokenizer().backend_tokenizer.to_str())
    rules_of(json.dumps({**written, **change, "model": {**written["model"], **(model or {})}}), 300)


@pytest.mark.parametrize(
    ("change", "model", "reason"),
    [
        ({"normalizer": {"type": "NFKC"}}, None, "it changes texts before it cuts them \\(NFKC\\)"),
        ({"normalizer": {"type": "NFC"}, "added_tokens": [ADDED | {"normalized": True}]}, None, "what NFC makes of a text"),
        ({"pre_tokenizer": None}, None, "not one regex over bytes"),
        (
            {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}},
            None,
            "not one regex over bytes",
        ),
        ({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}}, None, "not one regex over bytes"),
        ({}, {"type": "Unigram"}, "it is Unigram"),
        ({}, {"byte_fallback": True}, "`byte_fallback`"),
        ({}, {"dropout": 0.1}, "`dropout`"),
    ],
)
def test_a_tokenizer_that_is_not_followed_says_why(change: dict[str, object], model: dict[str, object] | None, reason: str) -> None:
    with pytest.raises(UnsupportedGrammar, match=reason):
        refused(change, model)


def tokenizer_without(*absent: int) -> GrammarTokenizer:
    """The tiny one without the tokens of these bytes."""
    written = json.loads(tiny_tokenizer().backend_tokenizer.to_str())
    for byte in absent:
        del written["model"]["vocab"][bytes_to_unicode()[byte]]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(written)), eos_token="<|end|>")
    return GrammarTokenizer.from_huggingface(tokenizer, 300)


def test_texts_with_bytes_that_have_no_token_cannot_be_written() -> None:
    """As SmolLM2's tokenizer, which lacks some control characters and some first bytes of characters."""
    tokenizer = tokenizer_without(0x04, 0x1D, 0xF1)
    of = probes(tokenizer)
    assert not of.texts().wrong
    assert not of.sequences(1500).wrong
    assert not of.rows(80).wrong
    assert b"\x04" not in tokenizer.vocabulary


def test_characters_that_could_be_begun_and_never_ended_are_refused() -> None:
    with pytest.raises(UnsupportedGrammar, match="no tokens for some bytes inside of characters"):
        assert tokenizer_without(0x95).canonical


@pytest.mark.parametrize("spellings", [["ab", "abc"], ["aba"], ["ab", "bc"]])
def test_added_tokens_that_overlap_are_refused(spellings: list[str]) -> None:
    added = [ADDED | {"id": 280 + number, "content": spelling} for number, spelling in enumerate(spellings)]
    with pytest.raises(UnsupportedGrammar, match="added tokens"):
        refused({"added_tokens": added})


def test_a_piece_that_is_a_token_may_not_be_beyond_merges() -> None:
    """`ignore_merges` makes such a token where it is a whole piece, and only there."""
    written = json.loads(tiny_tokenizer().backend_tokenizer.to_str())
    written["model"]["vocab"]["zzz"] = 290
    written["model"]["ignore_merges"] = True
    vocabulary = [*GrammarTokenizer.from_huggingface(tiny_tokenizer(), 300).vocabulary]
    vocabulary[290] = b"zzz"
    with pytest.raises(UnsupportedGrammar, match="tokens that merges do not make"):
        CanonicalAutomaton.of(json.dumps(written), vocabulary)


def test_the_latest_rows_are_kept() -> None:
    rows = PackedRows(max_bytes=2 * 4)
    made: list[int] = []

    def row(number: int) -> int:
        def make() -> np.ndarray[tuple[int], np.dtype[np.int32]]:
            made.append(number)
            return packed(np.array([number == at for at in range(8)]))

        return int(rows.get(number, make)[0])

    assert [row(number) for number in (0, 1, 0, 2, 0, 1)] == [1, 2, 1, 4, 1, 2]
    assert made == [0, 1, 2, 1]
    assert rows.size_bytes == 8
