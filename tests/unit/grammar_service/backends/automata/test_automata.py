"""Regexes and choices as automata of our own: the same masks as the libraries', made before they are asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.automata.byte_dfa import of_regex
from grammar_service.automata.token_trie import TokenTrie
from grammar_service.backends import backend_named, select_backend, select_stopgap
from grammar_service.backends.automata.grammar import AutomataGrammar
from grammar_service.backends.automata.state_rows import StateRows, compiled
from grammar_service.errors import ArtifactError, InvalidGrammar, UnsupportedGrammar
from grammar_service.segments import Segmenter
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of, ids_of
from tests.tokenizers.tiny_tokenizer import STOP_ID, VOCAB_SIZE

TOO_LARGE = "(a|b)*a(a|b){13}"
PATTERNS = [
    r"-?(0|[1-9]\d*)(\.\d+)?",
    "(yes|no), because [a-z ,]{1,12}\\.",
    r"[^\n]{1,5}",
    "[é東🎉a]{2,3}",
    r"\w+@\w+\.(com|org)",
    "(?=.*b)[abc]{2}",
]


@pytest.fixture(scope="module")
def embedded() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)


def regex(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.REGEX, text)


def choice(*texts: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.CHOICE, json.dumps(texts))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_masks_are_those_of_a_library_that_lets_a_model_choose_its_tokens(pattern: str, embedded: GrammarTokenizer) -> None:
    grammar = grammar_of(regex(pattern), embedded, "automata")
    assert isinstance(grammar, AutomataGrammar)
    library, chance = grammar_of(regex(pattern), embedded, "xgrammar"), Random(2)
    for _ in range(6):
        ours, theirs = grammar.matcher(None, 0), library.matcher(None, 0)
        for _ in range(12):
            options = allowed(ours, embedded.vocab_size)
            assert options == allowed(theirs, embedded.vocab_size)
            if ours.is_terminated():
                break
            token, other = chance.choice(sorted(options)), chance.randrange(embedded.vocab_size)
            assert ours.accept(other) == theirs.accept(other) == (other in options)
            if other in options:
                ours.rollback(1)
                theirs.rollback(1)
            assert ours.accept(token)
            assert theirs.accept(token)


def test_every_choice_may_come_and_again(tokenizer: GrammarTokenizer) -> None:
    texts = [f"{number:03d} {'ab' * (number % 7)}" for number in range(600)]
    grammar = grammar_of(choice(*texts), tokenizer, "automata")
    for text in [*texts, *texts[:5]]:
        matcher = grammar.matcher(None, 0)
        for token in [*ids_of(text), STOP_ID]:
            assert token in allowed(matcher, VOCAB_SIZE)
            assert matcher.accept(token)


def test_what_every_text_goes_on_with_is_forced(tokenizer: GrammarTokenizer) -> None:
    matcher = grammar_of(regex("abc(de|dé)?"), tokenizer, "automata").matcher(None, 0)
    assert matcher.forced_bytes() == b"abc"
    assert all(map(matcher.accept, ids_of("abc")))
    assert matcher.forced_bytes() == b"", "the end may come"
    assert all(map(matcher.accept, ids_of("d")))
    assert matcher.forced_bytes() == b""
    assert not any(map(matcher.accept, ids_of("x")))


def test_segments_are_those_of_a_librarys_matcher(embedded: GrammarTokenizer) -> None:
    segmenter, spec = Segmenter(embedded), regex("the (first|fifth) of (May|March), 20[0-9]{2}")
    course: list[int] = []
    ours, theirs = (grammar_of(spec, embedded, name).matcher(None, 8) for name in ("automata", "xgrammar"))
    chance = Random(4)
    while not ours.is_terminated():
        segment = segmenter.find(ours, course)
        assert segment == segmenter.find(theirs, course)
        for token in segment.tokens or [chance.choice(sorted(allowed(ours, embedded.vocab_size)))]:
            assert ours.accept(token)
            assert theirs.accept(token)
            course.append(token)


def test_what_becomes_too_large_is_the_librarys(tokenizer: GrammarTokenizer) -> None:
    backend = backend_named("automata")
    assert not backend.unsupported(regex(TOO_LARGE))
    assert compiled(regex(TOO_LARGE), tokenizer) is None
    grammar = backend.load(backend.compile(regex(TOO_LARGE), tokenizer).data, tokenizer)
    assert not isinstance(grammar, AutomataGrammar)
    assert allowed(grammar.matcher(None, 0), VOCAB_SIZE) >= set(ids_of("a") + ids_of("b"))


def test_a_vocabulary_without_some_byte_has_no_automaton() -> None:
    tokens = [bytes([byte]) for byte in range(256) if byte != ord("z")]
    with pytest.raises(UnsupportedGrammar, match="lacks tokens"):
        StateRows.of(of_regex("a*z"), TokenTrie(tokens))
    assert len(StateRows.of(of_regex("a*y"), TokenTrie(tokens)).accepting) == 2


def test_a_regex_that_nothing_matches_is_refused(tokenizer: GrammarTokenizer) -> None:
    with pytest.raises(InvalidGrammar, match="nothing matches"):
        compiled(regex("(?!a)a"), tokenizer)


@pytest.mark.parametrize(
    ("name", "value"),
    [("moves", 1 << 20), ("moves", -2), ("row_of", 1 << 20), ("words", 1 << 20), ("words", -1), ("row_starts", -1), ("classes", 255)],
)
def test_a_payload_that_leads_nowhere_is_refused(tokenizer: GrammarTokenizer, name: str, value: int) -> None:
    rows = StateRows.of(of_regex("ab[0-9]*"), tokenizer.trie)
    assert rows.fits(VOCAB_SIZE)
    changed = getattr(rows, name).copy()
    changed.flat[-1] = value
    hostile = replace(rows, **{name: changed})
    assert not hostile.fits(VOCAB_SIZE)
    with pytest.raises(ArtifactError, match="leads to states or tokens that there are not"):
        backend_named("automata").load(b"R" + hostile.payload(), tokenizer)


def test_it_serves_regexes_with_a_stopgap_and_leaves_choices_to_the_libraries() -> None:
    chosen = select_backend(regex("[a-z]+"))
    assert chosen.name == "automata"
    stopgap = select_stopgap(regex("[a-z]+"), chosen)
    assert stopgap is not None
    assert stopgap.name == "llguidance"
    assert select_backend(choice("left", "right")).name == "xgrammar"
    assert select_backend(choice(*map(str, range(2000)))).name == "llguidance"
