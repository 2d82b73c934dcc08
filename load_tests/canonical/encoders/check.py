"""`python -m load_tests.canonical.encoders.check FILE...`: whether canonical output supports a tokenizer, and equals its encoder.

FILE is a `tokenizer.json`, or a file of tiktoken's ranks with the name of a pre-tokenizer: `o200k_base.tiktoken@o200k`.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer, normalizers
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import TikTokenConverter

from grammar_service.errors import UnsupportedGrammar
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.encoders.trained import NFC, PATTERNS
from load_tests.canonical.probes import Probes, project_texts

SEED = 3
LETTERS = 60_000
"""Of each of the project's texts."""
END = "<|end|>"
"""For a tokenizer that has no special token."""


def main(
    files: Annotated[list[str], typer.Argument(help="tokenizer.json, or ranks of tiktoken with @ and one of " + ", ".join(PATTERNS))],
    sequences: Annotated[int, typer.Option(min=1, help="that are tried with each")] = 3000,
    rows: Annotated[int, typer.Option(min=1, help="tokens in rows that are tried with each")] = 300,
) -> None:
    """Say of each tokenizer whether its canonical output is exact, or why it is refused."""
    table = Table("file", "tokens", "tables, s", "tried", "wrong")
    wrong = 0
    for file in files:
        tokenizer = _read(file)
        began = process_time()
        try:
            automaton = tokenizer.canonical
        except UnsupportedGrammar as error:
            table.add_row(Path(file).name, str(tokenizer.vocab_size), "", str(error), "")
            continue
        took = process_time() - began
        probes = Probes(tokenizer, automaton, [text[:LETTERS] for text in project_texts()], SEED)
        found = [probes.texts(), probes.sequences(sequences), probes.rows(rows)]
        wrong += sum(each.wrong for each in found)
        tried = sum(each.tried for each in found)
        table.add_row(Path(file).name, str(tokenizer.vocab_size), f"{took:.1f}", str(tried), str(sum(each.wrong for each in found)))
    Console().print(table)
    raise typer.Exit(bool(wrong))


def _read(file: str) -> GrammarTokenizer:
    name, _, pattern = file.partition("@")
    tokenizer = _of_ranks(name, pattern) if pattern else Tokenizer.from_file(name)
    special = [token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special] or [END]
    tokenizer.add_special_tokens(special[:1])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=special[0])
    return GrammarTokenizer.from_huggingface(fast, tokenizer.get_vocab_size())


def _of_ranks(file: str, pattern: str) -> Tokenizer:
    tokenizer: Tokenizer = TikTokenConverter(vocab_file=file, pattern=PATTERNS[pattern]).converted()
    if pattern in NFC:
        tokenizer.normalizer = normalizers.NFC()
    return tokenizer


if __name__ == "__main__":
    typer.run(main)
