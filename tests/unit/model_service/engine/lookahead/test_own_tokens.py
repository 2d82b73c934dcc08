"""An answer's own tokens are those that the tokenizer makes of its text, and that it leaves them is told once."""

from __future__ import annotations

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.lookahead.own_tokens import OwnTokens

TOKENIZER = GrammarTokenizer.load(EMBEDDED_WEIGHTS)
END = TOKENIZER.stop_token_ids[0]


def left(*parts: tuple[int, ...]) -> list[bool]:
    own = OwnTokens(TOKENIZER.canonical, {END})
    return [own.are_left(part) for part in parts]


def test_a_text_in_its_tokenizers_tokens_keeps_to_them_however_it_comes() -> None:
    tokens = tuple(TOKENIZER.encode("a city, and the number"))
    assert left((*tokens, END)) == [False]
    assert left(*((token,) for token in tokens), (END,)) == [False] * (len(tokens) + 1)


def test_what_the_tokenizer_would_not_make_is_told_once() -> None:
    tokens = tuple(token for letter in " the end" for token in TOKENIZER.encode(letter))
    assert sum(left(*((token,) for token in tokens), (END,))) == 1
    assert left(tokens[:1], (*tokens[1:], END), ()) == [False, True, False]
