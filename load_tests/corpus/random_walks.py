"""Random walks to the end of a text through the masks of a grammar, by tokens that like to repeat themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import jsonschema
import numpy as np
import numpy.typing as npt
import torch

from grammar_service.backends import CompiledGrammar
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.errors import BenchFailed

_LIKELY = set(b'ab":,{}[] 1')
_LONGEST = 2
_ENDS = (b"}", b"]", b'"}', b'"]', b'"', b'":', b"1")
"""What leads to the end."""
LONG = 60
"""Tokens after which a walk looks for its end."""
MOST = 3000


class Walker:
    """Through grammars of one vocabulary."""

    def __init__(self, tokenizer: GrammarTokenizer, chance: Random) -> None:
        self._tokenizer = tokenizer
        self._chance = chance
        vocabulary = tokenizer.vocabulary
        self._likely = _ids(token for token, text in enumerate(vocabulary) if text and len(text) <= _LONGEST and set(text) <= _LIKELY)
        self._letters = _ids(token for token in self._likely if len(vocabulary[token]) == 1)
        index = {text: token for token, text in enumerate(vocabulary) if text in _ENDS}
        self._ends = _ids(index[text] for text in _ENDS if text in index)
        self._mask = torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)
        self._row: npt.NDArray[np.int32] = self._mask[0].numpy()

    def walk(self, grammar: CompiledGrammar) -> str:
        """The text. Raises BenchFailed: nothing is allowed, what is allowed is not accepted, or it has no end."""
        matcher, text = grammar.matcher(None, 0), b""
        for step in range(MOST):
            matcher.fill(self._mask, 0)
            if not self._row.any():
                raise BenchFailed(f"a dead end behind {text[-80:]!r}")
            stops = self._allowed(_ids(self._tokenizer.stop_token_ids))
            if len(stops) and (step > LONG or self._chance.random() < 0.5):
                return text.decode("utf-8")
            token = self._next(step)
            if not matcher.accept(token):
                raise BenchFailed(f"token {token} is allowed and not accepted behind {text[-80:]!r}")
            if token in self._tokenizer.stop_token_ids:
                return text.decode("utf-8")
            text += self._tokenizer.vocabulary[token]
        raise BenchFailed(f"no end behind {text[-80:]!r}")

    def _next(self, step: int) -> int:
        ends = self._allowed(self._ends)
        if step > LONG and len(ends) and self._chance.random() < 0.8:
            return int(self._chance.choice(ends))
        likely = self._allowed(self._letters if step > LONG else self._likely)
        if len(likely):
            return int(self._chance.choice(likely))
        return int(self._chance.choice(np.flatnonzero(np.unpackbits(self._row.view(np.uint8), bitorder="little"))))

    def _allowed(self, tokens: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        allowed: npt.NDArray[np.intp] = tokens[(self._row[tokens >> 5] >> (tokens & 31) & 1).astype(bool)]
        return allowed


def is_valid(text: str, schema: dict[str, Any]) -> bool:
    """By `jsonschema`."""
    return bool(jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)))


def repeats(text: str) -> bool:
    """Whether some object of the text has a name twice."""
    found = False

    def pairs(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        found = found or len(dict(members)) < len(members)
        return dict(members)

    json.loads(text, object_pairs_hook=pairs)
    return found


def _ids(tokens: Any) -> npt.NDArray[np.intp]:
    return np.array(list(tokens), dtype=np.intp)
