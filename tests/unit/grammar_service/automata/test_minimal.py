from __future__ import annotations

from random import Random

from grammar_service.automata.minimal import minimal
from grammar_service.automata.token_index import TokenIndex

MOST = 6


def words(index: TokenIndex, state: int = 0, most: int = MOST) -> set[tuple[int, ...]]:
    """Of up to so many tokens."""
    found: set[tuple[int, ...]] = {()} if index.accepting[state] else set()
    if most:
        for token, target in zip(*(column.tolist() for column in index.row(state)), strict=True):
            found |= {(token, *rest) for rest in words(index, target, most - 1)}
    return found


def random_index(chance: Random) -> TokenIndex:
    """Each state comes twice, and either of them is led to."""
    count = chance.randint(1, 4)
    once = [{token: chance.randrange(count) for token in range(3) if chance.random() < 0.5} for _ in range(count)]
    moves = [{token: target + count * chance.randrange(2) for token, target in row.items()} for row in once * 2]
    return TokenIndex.of_moves(moves, [chance.random() < 0.4 for _ in range(count)] * 2).trimmed()


def test_it_accepts_the_same_and_no_two_of_its_states_do() -> None:
    chance, smaller = Random(5), 0
    for _ in range(300):
        index = random_index(chance)
        found = minimal(index)
        assert words(found) == words(index)
        endings = [frozenset(words(found, state)) for state in range(len(found))]
        assert len(set(endings)) == len(endings)
        smaller += len(found) < len(index)
    assert smaller > 50


def test_equal_ends_become_one_and_the_start_stays_first() -> None:
    found = minimal(TokenIndex.of_moves([{0: 1, 1: 2}, {3: 3}, {3: 4}, {}, {}], [False] * 3 + [True, True]))
    assert [found.row(state)[0].tolist() for state in range(len(found))] == [[0, 1], [3], []]
