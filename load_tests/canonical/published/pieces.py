"""The tokenizer of the published figures: Mistral 7B's of 32,000 pieces, in the data folder of `mistral_common`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import files

import sentencepiece

from grammar_service.automata.byte_dfa import ByteDfa
from grammar_service.automata.direct_merge import Merge, direct_merge
from grammar_service.automata.merge_graph import MergeGraph
from grammar_service.automata.token_index import TokenIndex
from grammar_service.automata.token_trie import TokenTrie
from grammar_service.canonical.merges import MergeTable, derive
from grammar_service.canonical.pairs import PairTable
from grammar_service.errors import UnusableFile

PACKAGE, FILE = "mistral_common", "tokenizer.model.v1"
_BLANK = "▁"


@dataclass(frozen=True)
class Pieces:
    """`texts`: the pieces that merges make, single characters first, then by rank, the lowest first; a blank is a blank."""

    texts: tuple[str, ...]

    @classmethod
    def published(cls) -> Pieces:
        """Raises UnusableFile: the file is not there."""
        found = [file for file in files(PACKAGE) or () if file.name == FILE]
        if not found:
            raise UnusableFile(f"{FILE} is not in {PACKAGE}")
        model = sentencepiece.SentencePieceProcessor(model_file=str(found[0].locate()))
        others = (model.is_unknown, model.is_control, model.is_byte, model.is_unused)
        normal = [number for number in range(model.vocab_size()) if not any(is_other(number) for is_other in others)]
        normal.sort(key=lambda number: (len(model.id_to_piece(number)) > 1, -model.get_score(number)))
        return cls(tuple(model.id_to_piece(number).replace(_BLANK, " ") for number in normal))

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {text: number for number, text in enumerate(self.texts)}

    def merges(self) -> Iterator[Merge]:
        """Every two pieces that make a third one, in order of its rank."""
        for whole, text in enumerate(self.texts):
            for at in range(1, len(text)):
                left, right = self.numbers.get(text[:at]), self.numbers.get(text[at:])
                if left is not None and right is not None:
                    yield Merge(left, right, whole)

    def pairs(self) -> PairTable:
        """Which piece may stand behind which."""
        table = MergeTable(((merge.left, merge.right, merge.whole) for merge in self.merges()), len(self.texts))
        return PairTable(derive([[self.numbers[letter] for letter in text] for text in self.texts], table), table)

    def index(self, language: ByteDfa) -> TokenIndex:
        """Every sequence of pieces whose text is in the language."""
        return TokenIndex.of_language(language, TokenTrie([text.encode() for text in self.texts]))

    def own_sequences(self, language: ByteDfa) -> TokenIndex:
        """Of a language over ASCII, the sequences that merges make of its texts."""
        moves = [
            {self.numbers[chr(byte)]: target for byte, target in enumerate(row) if target >= 0 and chr(byte) in self.numbers}
            for row in language.moves[:, :128].tolist()
        ]
        graph = MergeGraph(moves, [state for state, ends in enumerate(language.accepting.tolist()) if ends])
        return direct_merge(graph, self.merges()).index()
