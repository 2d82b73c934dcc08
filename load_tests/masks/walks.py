"""Requests that are being answered, as far as their masks are concerned: random walks through real grammars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from random import Random

import numpy as np
import numpy.typing as npt
import torch

from grammar_service.backends import CompiledGrammar, Matcher
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

Row = npt.NDArray[np.int32]
VALUE_TOKENS = 8
"""Mean length of what a grammar leaves open-ended: text in a string, digits of a number, characters of a pattern."""


class SeenRows:
    """Every bitmask row once; walks remember numbers."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self._numbers: dict[bytes, int] = {}

    def number(self, row: Row) -> int:
        return self._numbers.setdefault(row.tobytes(), len(self._numbers))

    def matrix(self, numbers: Sequence[int]) -> npt.NDArray[np.int32]:
        rows = list(self._numbers)
        return np.stack([np.frombuffer(rows[number], dtype=np.int32) for number in numbers])


class Typist:
    """Takes tokens in place of a model: by how often they occur in `texts`, among the allowed ones.

    Such draws would stay for long where a grammar allows the same again and again. So where a token has left the mask as it was, the
    next one is, once in `VALUE_TOKENS` times, a character that changes it.
    """

    def __init__(self, tokenizer: GrammarTokenizer, texts: Iterable[str], seen: SeenRows, random: Random) -> None:
        counts = np.zeros(tokenizer.vocab_size)
        np.add.at(counts, [token for text in texts for token in tokenizer.encode(text)], 1)
        self._tokens = np.flatnonzero(counts)
        self._weights = counts[self._tokens]
        self._characters = [index for index, token in enumerate(tokenizer.vocabulary) if len(token) == 1 and 32 <= token[0] < 127]
        self._tensor = torch.empty(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)
        self._row: Row = self._tensor.numpy()[0]
        self._seen, self._random = seen, random
        self._exits: dict[tuple[int, int], list[int]] = {}

    def walk(self, grammar: CompiledGrammar, skip: int, steps: int) -> list[list[int]]:
        """Numbers of the rows before each of `steps` tokens, after `skip` of them; a new list where one answer ends and the next begins."""
        walked: list[list[int]] = []
        while steps > 0:
            walked.append([])
            for number, _ in self._answer(grammar):
                if skip > 0:
                    skip -= 1
                else:
                    walked[-1].append(number)
                    steps -= 1
                if steps == 0:
                    break
        return walked

    def answer(self, grammar: CompiledGrammar, most: int) -> list[int]:
        """The tokens of an answer, or the first `most` of them; the last one may be a stop token."""
        return [token for _, token in islice(self._answer(grammar), most)]

    def _answer(self, grammar: CompiledGrammar) -> Iterator[tuple[int, int]]:
        """For each token of an answer, the number of the row before it, and the token."""
        matcher, before = grammar.matcher(None, 1), -1
        while not matcher.is_terminated():
            number = self._filled(matcher)
            token = self._next(grammar, matcher, number, number == before)
            yield number, token
            matcher.accept(token)
            before = number

    def _filled(self, matcher: Matcher) -> int:
        matcher.fill(self._tensor, 0)
        return self._seen.number(self._row)

    def _next(self, grammar: CompiledGrammar, matcher: Matcher, number: int, again: bool) -> int:
        row = self._row.copy()
        if again and self._random.random() < 1 / VALUE_TOKENS:
            exits = self._exits_of(grammar, matcher, number, row)
            allowed = [token for token in exits if _allows(row, np.array([token]))[0]]
            if allowed:
                return self._random.choice(allowed)
        weights = np.cumsum(self._weights * _allows(row, self._tokens))
        if weights[-1] > 0:
            return int(self._tokens[np.searchsorted(weights, self._random.random() * weights[-1], side="right")])
        return int(self._random.choice(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))))

    def _exits_of(self, grammar: CompiledGrammar, matcher: Matcher, number: int, row: Row) -> list[int]:
        """Characters after which another mask holds, tried once for each mask of a grammar."""
        key = id(grammar), number
        if key not in self._exits:
            tried = [token for token in self._characters if _allows(row, np.array([token]))[0]]
            self._exits[key] = [token for token in tried if self._mask_after(matcher, token) != number]
        return self._exits[key]

    def _mask_after(self, matcher: Matcher, token: int) -> int:
        matcher.accept(token)
        number = self._filled(matcher)
        matcher.rollback(1)
        return number


def renamed(schema: object, mark: str) -> object:
    """The same JSON Schema with other member names, so that it is another grammar."""
    if isinstance(schema, list):
        return [renamed(item, mark) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {name: renamed(value, mark) for name, value in schema.items()}
    if isinstance(members := changed.get("properties"), dict):
        changed["properties"] = {f"{name}{mark}": value for name, value in members.items()}
        changed["required"] = [f"{name}{mark}" for name in schema.get("required", ())]
    return changed


def _allows(row: Row, tokens: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    allowed: npt.NDArray[np.bool_] = (row[tokens >> 5] >> (tokens & 31) & 1).astype(np.bool_)
    return allowed
