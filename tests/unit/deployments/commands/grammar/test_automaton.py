"""`maskcast grammar automaton`: what it counts, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.commands.cli import app
from deployments.commands.grammar.automaton import ANY, CANONICAL, Automata, Counts, automata_of
from deployments.commands.grammar.automaton_table import show_automata
from grammar_service.automata.token_index import TokenIndex
from grammar_service.errors import UnsupportedGrammar
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import schema_spec
from tests.tokenizers.trained_tokenizers import contractions

BOOLEAN = "boolean: ((true)|(false))"


@pytest.fixture(scope="module")
def embedded() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)


def regex(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.REGEX, text)


def automaton(file: Path, *options: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["grammar", "automaton", str(file), *options])


def test_the_tokenizers_own_sequences_are_one_a_text_and_ask_for_less(embedded: GrammarTokenizer) -> None:
    found = automata_of(regex(BOOLEAN), embedded)
    plain, own = (Counts.of(found.indexes[name]) for name in (ANY, CANONICAL))
    assert found.byte_states == 17
    assert own.tokenizations == 2
    assert (plain.tokenizations or 0) > 100
    assert own.states < plain.states
    lengths = {len(embedded.encode(f"boolean: {value}")) for value in ("true", "false")}
    assert own.calls == frozenset((length, 1) for length in lengths)


def test_paths_of_states_with_one_way_on_are_counted_once_each() -> None:
    counts = Counts.of(TokenIndex.of_moves([{0: 1}, {1: 2}, {2: 3, 3: 4}, {4: 5}, {5: 5, 6: 6}, {7: 6}, {}], [False] * 6 + [True]))
    assert (counts.single, counts.forced, counts.longest) == (4, 3, 2)


def test_what_never_ends_has_no_number_and_is_told_so(embedded: GrammarTokenizer, tmp_path: Path) -> None:
    file = tmp_path / "digits.regex"
    file.write_text("[0-9]+\n", encoding="utf-8")
    output = automaton(file).output
    assert re.search(r"token sequences +│ endlessly many +│ endlessly many", output)
    assert re.search(r"model calls +│ no bound +│ no bound", output)


def test_a_number_too_long_to_be_read_is_rounded(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    doubling = TokenIndex.of_moves([*({0: state + 1, 1: state + 1} for state in range(100)), {}], [False] * 100 + [True])
    show_automata(Path("a.regex"), Automata(101, {ANY: doubling}), Console(width=120))
    assert re.search(r"token sequences +│ about 1\.2e30 ", capsys.readouterr().out)


def test_a_tokenizer_that_is_not_followed_leaves_its_own_out_and_says_why() -> None:
    found = automata_of(regex("a|b"), contractions(add_prefix_space=True))
    assert list(found.indexes) == [ANY]
    assert found.missing is not None
    assert "its pre-tokenizer is not one regex over bytes" in found.missing


def test_a_schema_is_no_automaton_as_it_is_written(embedded: GrammarTokenizer) -> None:
    with pytest.raises(UnsupportedGrammar, match="only a regex and a list of choices"):
        automata_of(schema_spec({"type": "boolean"}), embedded)


def test_small_automata_are_written_for_graphviz(tmp_path: Path) -> None:
    file, graph = tmp_path / "boolean.regex", tmp_path / "boolean.dot"
    file.write_text(BOOLEAN, encoding="utf-8")
    assert automaton(file, "--graph", str(graph)).exit_code == 0
    assert graph.read_text(encoding="utf-8").startswith("digraph")
