"""Random regexes, each with texts that it matches: what pre-tokenizers and merges find hard."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from grammar_service.regexes.rendering import literal

_PIECES = [
    *(
        "hello",
        "world",
        "foo",
        "bar",
        "a",
        "I",
        "we",
        "A",
        "ABC",
        "Http",
        "name",
        "s",
        "1",
        "12",
        "123",
        "1234",
        " ",
        "  ",
        "   ",
        "\n",
        "\n\n",
    ),
    *("\t", " \n", "\r\n", '"', '": "', '", "', '{"', "}", '",', "'", "'s", "'re", ".", "...", "/", "://", "_", "-", ",", ", ", "$", "("),
    *("é", "ü", "東", "京都", "日本", "🎉", "e\u0301", "あ", "B", "<|end|>", "</s>"),
]
_CLASSES = {
    "[a-z]": "abcdehlorwsmtv",
    "[A-Z]": "ABCHT",
    "[0-9]": "0123456789",
    "[a-zA-Z]": "abelorABd",
    "[ \\n]": " \n",
    "[a-z ]": "helowrd abs ",
    "[.,!?]": ".,!?",
    '[^"\\\\]': "abel 12.'\n東é🎉:{/",
    "[東京日本]": "東京日本",
    "[^a-z]": "AB 1.\n'\"東é",
}
_Sample = Callable[[], str]


@dataclass(frozen=True)
class Language:
    regex: str
    samples: list[_Sample]

    def text(self) -> str:
        return "".join(sample() for sample in self.samples)


def random_language(choose: random.Random) -> Language:
    parts = [choose.choice([_words, _words, _alternatives, _repeated])(choose) for _ in range(choose.randint(1, 5))]
    return Language("".join(regex for regex, _ in parts), [sample for _, sample in parts])


def _words(choose: random.Random) -> tuple[str, _Sample]:
    text = _text(choose, 5)
    return literal(text), lambda: text


def _alternatives(choose: random.Random) -> tuple[str, _Sample]:
    texts = [_text(choose, 3) for _ in range(choose.randint(2, 3))]
    return f"({'|'.join(map(literal, texts))})", lambda: choose.choice(texts)


def _repeated(choose: random.Random) -> tuple[str, _Sample]:
    name = choose.choice(list(_CLASSES))
    least, most = choose.randint(0, 1), choose.randint(1, 5)
    return f"{name}{{{least},{most}}}", lambda: "".join(choose.choice(_CLASSES[name]) for _ in range(choose.randint(least, most)))


def _text(choose: random.Random, most: int) -> str:
    return "".join(choose.choice(_PIECES) for _ in range(choose.randint(1, most)))
