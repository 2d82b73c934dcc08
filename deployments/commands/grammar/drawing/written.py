"""A drawing in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deployments.commands.grammar.automaton import Automata
from deployments.commands.grammar.drawing.graphviz import graphviz
from deployments.commands.grammar.drawing.panel import MOST_EDGES, MOST_STATES, panels_of
from grammar_service.errors import GrammarTooLarge, UnusableFile

DOT, PNG = ".dot", ".png"


def write_drawing(found: Automata, vocabulary: Sequence[bytes], path: Path) -> None:
    """As the suffix says. Raises UnusableFile: it says nothing, or matplotlib is missing; GrammarTooLarge: no automaton can be read."""
    if path.suffix not in (DOT, PNG):
        raise UnusableFile(f"{path}: a drawing is Graphviz text ({DOT}) or a picture ({PNG})")
    panels = panels_of(found, vocabulary)
    if not panels:
        raise GrammarTooLarge(f"nothing is drawn: more than {MOST_STATES} states, or {MOST_EDGES} pairs of them, cannot be read")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == DOT:
        path.write_text(graphviz(panels), encoding="utf-8")
        return
    try:
        from deployments.commands.grammar.drawing.picture import draw
    except ImportError:
        raise UnusableFile("a picture needs matplotlib: pip install matplotlib") from None
    draw(panels, path)
