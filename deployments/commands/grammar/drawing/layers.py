"""Where states and edges of a picture go: layers from left to right, an edge through a place of its own in each layer that it crosses
(Sugiyama, Tagawa & Toda 1981)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from deployments.commands.grammar.drawing.panel import Edge, Panel

_SWEEPS = 24
Place = tuple[float, float]
Node = tuple[int, int]
"""A state and -1, or the number of an edge and the layer that it crosses."""


@dataclass(frozen=True, slots=True)
class Layout:
    """`places`: of states, in layers to the right and lanes up; `ways`: of each edge the places that it goes through, both ends included;
    two of them only, if it goes back or stays."""

    places: Mapping[int, Place]
    ways: Sequence[Sequence[Place]]

    @property
    def height(self) -> float:
        lanes = [lane for way in self.ways for _, lane in way] + [lane for _, lane in self.places.values()]
        return max(lanes) - min(lanes) + 1


def layout(panel: Panel) -> Layout:
    """Of all states that are reached from the first one."""
    layers = _layers(panel)
    chains = [_chain(number, edge, layers) for number, edge in enumerate(panel.edges)]
    columns: dict[int, dict[Node, None]] = defaultdict(dict)
    for state, layer in layers.items():
        columns[layer][state, -1] = None
    for chain in chains:
        for node in chain[1:-1]:
            columns[node[1]][node] = None
    lanes = _lanes([[*columns[layer]] for layer in sorted(columns)], chains)

    def place(node: Node) -> Place:
        return float(layers[node[0]] if node[1] < 0 else node[1]), lanes[node]

    return Layout({state: place((state, -1)) for state in layers}, [[place(node) for node in chain] for chain in chains])


def _chain(number: int, edge: Edge, layers: Mapping[int, int]) -> list[Node]:
    """The edge's ends, and between them the layers that it crosses on its way to the right."""
    between = range(layers[edge.source] + 1, layers[edge.target])
    return [(edge.source, -1), *((number, layer) for layer in between), (edge.target, -1)]


def _layers(panel: Panel) -> dict[int, int]:
    """By the longest way from the start over edges that do not go back: to a state of the way on which it was first come to."""
    after = defaultdict(list)
    for edge in panel.edges:
        after[edge.source].append(edge.target)
    finished: dict[int, None] = {}
    open_states: dict[int, None] = {}
    forward: list[tuple[int, int]] = []
    waiting = [(panel.states[0], False)]
    while waiting:
        state, is_done = waiting.pop()
        if is_done:
            finished[state] = None
            del open_states[state]
        elif state not in finished and state not in open_states:
            open_states[state] = None
            forward += [(state, target) for target in after[state] if target not in open_states]
            waiting += [(state, True), *((target, False) for target in after[state])]
    layers = dict.fromkeys(reversed(finished), 0)
    ends = defaultdict(list)
    for source, target in forward:
        ends[source].append(target)
    for state in layers:
        for target in ends[state]:
            layers[target] = max(layers[target], layers[state] + 1)
    return layers


def _lanes(columns: Sequence[list[Node]], chains: Sequence[Sequence[Node]]) -> dict[Node, float]:
    """Each node near the middle of its neighbours, and at least one lane from the others of its layer."""
    beside: dict[Node, list[Node]] = defaultdict(list)
    for chain in chains:
        for left, right in pairwise(chain):
            if left != right:
                beside[left].append(right)
                beside[right].append(left)
    lanes = {node: float(lane) for column in columns for lane, node in enumerate(column)}
    for sweep in range(_SWEEPS):
        for column in columns if sweep % 2 == 0 else columns[::-1]:
            wished = {node: _mean([lanes[other] for other in beside[node]], lanes[node]) for node in column}
            column.sort(key=lambda node: wished[node])
            for node, lane in zip(column, _spread([wished[node] for node in column]), strict=True):
                lanes[node] = lane
    return lanes


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _spread(wished: Sequence[float]) -> list[float]:
    """Sorted wishes, a lane apart and moved together so that they are missed by as much on either side."""
    found: list[float] = []
    for lane in wished:
        found.append(max(lane, found[-1] + 1) if found else lane)
    off = _mean([lane - wish for lane, wish in zip(found, wished, strict=True)], 0.0)
    return [lane - off for lane in found]
