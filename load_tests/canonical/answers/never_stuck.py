"""Many answers under everyday grammars, some drawn with ill will: none may get stuck, and all are to be the tokenizer's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import cycle, islice
from typing import Any

from grammar_service.backends import CompiledGrammar
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.answers.answering import Answer, Answering, Choose
from load_tests.canonical.answers.choosers import ADVERSARIAL, RANDOM, Choosers
from load_tests.canonical.answers.languages import everyday_specs, loaded

PART = "answers"
COUNTS = ("tried", "ended", "tokens", "drawn", "redrawn", "stuck", "fell_back", "not_canonical")


def answer_rows(tokenizer: GrammarTokenizer, texts: Sequence[str], walks: int, adversarial: int, seed: int) -> Iterator[dict[str, Any]]:
    """So many answers by each kind of draws together; grammars take turns."""
    grammars = [loaded(spec, tokenizer) for spec in everyday_specs(seed).values()]
    choosers, answering = Choosers(tokenizer, texts, seed).by_name(), Answering(tokenizer)
    for names, count in ((RANDOM, walks), (ADVERSARIAL, adversarial)):
        for name, share in zip(names, _shares(count, len(names)), strict=True):
            yield {"part": PART, "draws": name, "grammars": len(grammars), **counted(grammars, choosers[name], answering, tokenizer, share)}


def counted(
    grammars: Collection[CompiledGrammar], choose: Choose, answering: Answering, tokenizer: GrammarTokenizer, count: int
) -> dict[str, int]:
    """`not_canonical`: ended answers that did not fall back, and whose tokens are not those of their texts."""
    found = dict.fromkeys(COUNTS, 0)
    for grammar in islice(cycle(grammars), count):
        answer = answering.answer(grammar, choose)
        found["tried"] += 1
        found["ended"] += answer.ended
        found["tokens"] += len(answer.tokens)
        found["drawn"] += answer.draws
        found["redrawn"] += answer.redraws
        found["stuck"] += answer.stuck
        found["fell_back"] += answer.fell_back
        found["not_canonical"] += answer.ended and not answer.fell_back and not _is_canonical(answer, tokenizer)
    return found


def _shares(count: int, parts: int) -> list[int]:
    return [count // parts + (number < count % parts) for number in range(parts)]


def _is_canonical(answer: Answer, tokenizer: GrammarTokenizer) -> bool:
    """Bytes that are no text have no tokens."""
    text = b"".join(tokenizer.vocabulary[token] for token in answer.tokens)
    try:
        return tokenizer.encode(text.decode()) == answer.tokens
    except UnicodeDecodeError:
        return False
