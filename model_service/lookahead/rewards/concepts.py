"""The share of concepts that a text covers, whatever the forms of their words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from simplemma import Lemmatizer
from simplemma.strategies import DefaultStrategy
from simplemma.strategies.dictionaries import StreamDictionaryFactory
from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

from model_service.errors import InvalidLookahead

_WORD = re.compile(r"\w+(?:['’]\w+)*")
LANGUAGES_HELD = 4
"""Dictionaries in memory at a time: 3 to 60 MiB each, and a tenth of a second to a second and a half to load."""
LEMMAS_HELD = 1 << 16
LONGEST_WORD = 100
"""Characters. Longer ones are no dictionary's (simplemma 1.1 tells neither), and would be held."""


class Concepts:
    """A concept is a word, or some that stand together. A word that a look-ahead has only begun counts as what it is so far.

    Raises InvalidLookahead, its field as in the reward: no such language, or a concept without a word.
    """

    def __init__(self, words: Sequence[str], language: str) -> None:
        if language not in SUPPORTED_LANGUAGES:
            known = ", ".join(sorted(SUPPORTED_LANGUAGES))
            raise InvalidLookahead("language", f"there are no lemmas of {language!r}, but of {known}")
        self._language = language
        self._wanted = [self._line(word) for word in words]
        for number, line in enumerate(self._wanted):
            if not line:
                raise InvalidLookahead(f"words[{number}]", f"{words[number]!r} has no word")

    def score(self, texts: Sequence[str]) -> list[float]:
        """From 0 to 1."""
        return [self._share(self._line(text)) for text in texts]

    def _share(self, line: str) -> float:
        return sum(wanted in line for wanted in self._wanted) / len(self._wanted)

    def _line(self, text: str) -> str:
        """Its lemmas, a space around each; empty where there is no word."""
        lemmas = [self._lemma(word).casefold() for word in _WORD.findall(text)]
        return f" {' '.join(lemmas)} " if lemmas else ""

    def _lemma(self, word: str) -> str:
        return _lemmatizer().lemmatize(word, self._language) if len(word) <= LONGEST_WORD else word


@lru_cache(maxsize=1)
def _lemmatizer() -> Lemmatizer:
    """Of the process: dictionaries are read once, and kept packed."""
    strategy = DefaultStrategy(dictionary_factory=StreamDictionaryFactory(cache_max_size=LANGUAGES_HELD))
    return Lemmatizer(cache_max_size=LEMMAS_HELD, lemmatization_strategy=strategy)
