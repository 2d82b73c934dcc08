"""The automaton of canonical sequences against the encoder that it is to be equal to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from grammar_service.canonical.automaton import CanonicalAutomaton, State
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

ROOT = Path(__file__).resolve().parents[2]
CHARACTERS = "\n a\"1./\u0301東é🎉\u00a0A\r'sß\t,{}:-Ⅷ\U0001f9ff\u200d"
ENDS = ["", "a", "\n", " ", "1", "x y", ".", " a", "A", "/", "\n\n", " \n", "'s", "é", "東"]


@dataclass(slots=True)
class Probed:
    """`wrong`: automaton and encoder disagree; `canonical`: of the tried ones, those that the encoder makes."""

    tried: int = 0
    canonical: int = 0
    wrong: int = 0


class Probes:
    """`texts` are what sequences are cut from, and `characters` what is put into them; both encoder and automaton are of one tokenizer."""

    def __init__(
        self, tokenizer: GrammarTokenizer, automaton: CanonicalAutomaton, texts: Sequence[str], seed: int, characters: str = CHARACTERS
    ) -> None:
        self._chance = Random(seed)
        self._characters = characters
        self._automaton = automaton
        self._tokenizer = tokenizer
        self._sources = [found for text in texts if (found := tokenizer.inner.encode(text.encode())) is not None]
        self._text = tokenizer.vocabulary
        self._ids = [token for token, text in enumerate(self._text) if text]
        self._by_text = {self._text[token]: token for token in self._ids}

    def texts(self) -> Probed:
        """Every token of the texts: none may be refused."""
        found = Probed()
        for source in self._sources:
            state: State | None = self._automaton.start
            for token in source:
                found.tried += 1
                after = None if state is None else self._automaton.after(state, token)
                found.wrong += after is None
                state = after
            found.wrong += state is None or not self._automaton.may_end(state)
        found.canonical = found.tried
        return found

    def sequences(self, count: int) -> Probed:
        """Pieces of the texts, most of them changed."""
        found = Probed()
        for _ in range(count):
            sequence = self._changed(self._piece(6))
            canonical = self._is_canonical(sequence)
            found.tried += 1
            found.canonical += canonical
            found.wrong += canonical != self._automaton.accepts(sequence)
        return found

    def rows(self, count: int) -> Probed:
        """Tokens in rows and not in rows: `wrong` where the row is not what `after` says, where it lacks a token by which the encoder goes
        on, or where it has one by which no end that is tried makes the encoder go on."""
        found = Probed()
        while found.tried < count:
            piece = self._piece(4)
            state = self._state(piece)
            if state is None:
                continue
            bits = np.unpackbits(self._automaton.row(state).view(np.uint8), bitorder="little")
            for token in self._candidates(bits):
                viable = self._is_viable([*piece, token])
                if viable is None:
                    continue
                found.tried += 1
                found.canonical += viable
                found.wrong += not (viable == bool(bits[token]) == (self._automaton.after(state, token) is not None))
        return found

    def _candidates(self, bits: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> Iterator[int]:
        yield self._chance.choice(self._ids)
        yield self._chance.choice(self._chance.choice(self._sources))
        inside, outside = np.flatnonzero(bits), [token for token in self._chance.sample(self._ids, 20) if not bits[token]]
        if len(inside):
            yield int(self._chance.choice(inside))
        yield from outside[:1]

    def _is_viable(self, sequence: list[int]) -> bool | None:
        """Whether the encoder begins so with some text; None: that cannot be told, since it ends inside of a character."""
        text = b"".join(self._text[token] for token in sequence)
        try:
            whole = text.decode()
        except UnicodeDecodeError:
            return None
        ends = [*ENDS, *(one + other for one in CHARACTERS for other in ENDS)]
        encoded = ((self._tokenizer.inner.encode((whole + end).encode()) or ())[: len(sequence)] for end in ends)
        return any(list(found) == sequence for found in encoded)

    def _state(self, sequence: Sequence[int]) -> State | None:
        state: State | None = self._automaton.start
        for token in sequence:
            if state is not None:
                state = self._automaton.after(state, token)
        return state

    def _is_canonical(self, sequence: Sequence[int]) -> bool:
        return self._tokenizer.inner.encode(b"".join(self._text[token] for token in sequence)) == tuple(sequence)

    def _piece(self, most: int) -> list[int]:
        source = self._chance.choice(self._sources)
        begin = self._chance.randrange(max(len(source) - most, 1))
        return list(source[begin : begin + self._chance.randint(1, most)])

    def _changed(self, sequence: list[int]) -> list[int]:
        at = self._chance.randrange(len(sequence))
        match self._chance.randrange(6):
            case 0:
                return self._cut_anew(b"".join(self._text[token] for token in sequence))
            case 1:
                return [*sequence[:at], *self._cut_anew(self._text[sequence[at]]), *sequence[at + 1 :]]
            case 2:
                return [*sequence[:at], self._chance.choice(self._ids), *sequence[at + 1 :]]
            case 3:
                return [*sequence[:at], self._chance.choice(self._chance.choice(self._sources)), *sequence[at:]]
            case 4:
                text = "".join(self._chance.choice(self._characters) for _ in range(self._chance.randint(1, 6))).encode()
                return self._cut_anew(text) if self._chance.random() < 0.5 else list(self._tokenizer.inner.encode(text) or sequence)
            case _:
                return sequence

    def _cut_anew(self, text: bytes) -> list[int]:
        """The bytes as some tokens, mostly long ones."""
        found: list[int] = []
        at = 0
        while at < len(text):
            lengths = [length for length in range(1, min(len(text) - at, 12) + 1) if text[at : at + length] in self._by_text]
            length = self._chance.choice(lengths) if self._chance.random() < 0.5 else lengths[-1]
            found.append(self._by_text[text[at : at + length]])
            at += length
        return found


def project_texts() -> list[str]:
    """Prose, code, JSON in three layouts, and characters by chance."""
    prose = "\n\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")))
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("grammar_service/**/*.py")))
    schemas = "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("load_tests/corpus/schemas/*.json")))
    chance = Random(7)
    odd = "".join(chance.choice(CHARACTERS) for _ in range(20_000))
    return [prose[:300_000], code[:300_000], schemas[:300_000], "".join(schemas.split())[:200_000], odd]
