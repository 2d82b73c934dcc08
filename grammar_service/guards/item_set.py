"""The items that one open array has, where none may come twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from decimal import Decimal
from functools import lru_cache

from grammar_service.guards.distinct_items import Items, Language
from grammar_service.guards.names import Names
from grammar_service.guards.tokens.name_tokens import NameTokens
from grammar_service.guards.tokens.token_set import GrowingSet, TokenSet, token_set
from grammar_service.regexes.counted import MANY, Beginnings

_NO_TOKENS = GrowingSet()
REMEMBERED = 16
"""Lists and languages of strings of which the beginnings are kept, with the tokens of a vocabulary that lead there."""
MOST_BEGINNINGS = 10_000
"""Of one list, or of the strings that requests have written of a language."""
_ESCAPED = tuple(bytes([byte]) for byte in (*b'"\\/', *range(0x20), *range(0x7F, 0x100)))
"""The first bytes of what may be written as an escape."""


class Numbers:
    """Numbers as they are written, without exponents: `1` and `1.0` are one."""

    def __init__(self) -> None:
        self._held: set[Decimal] = set()

    def __contains__(self, text: bytes) -> bool:
        return bool(self._held) and text[-1:].isdigit() and Decimal(text.decode()) in self._held

    @staticmethod
    def is_same(text: bytes, other: bytes) -> bool:
        return Decimal(text.decode()) == Decimal(other.decode())

    def add(self, text: bytes) -> None:
        self._held.add(Decimal(text.decode()))

    def drop(self, text: bytes) -> None:
        self._held.remove(Decimal(text.decode()))


class Counted(Names):
    """The strings of an array that has no others, by all that they begin with; it knows how many are left, and what leads to none."""

    def __init__(self, tokens: NameTokens, listing: Listing) -> None:
        super().__init__(tokens)
        self._listing = listing
        self._gone: Counter[bytes] = Counter()
        self._nowhere: defaultdict[bytes, GrowingSet] = defaultdict(GrowingSet)
        self._endings: Counter[bytes] = Counter()

    @property
    def into(self) -> TokenSet:
        """The tokens that go on behind the opening quote of a string, to where only so many are left."""
        return self._listing.into

    @property
    def through(self) -> TokenSet:
        """Those of them that end another one first."""
        return self._listing.through

    def add(self, name: bytes) -> None:
        super().add(name)
        for begun in self._counted_in(name):
            self._gone[begun] += 1
            if self.left(begun) == 0:
                for before, token in self._listing.leading(begun):
                    self._nowhere[before].add(token)
                self._endings.update(begun[:length] for length in range(len(begun)))

    def drop(self, name: bytes) -> None:
        super().drop(name)
        for begun in reversed(self._counted_in(name)):
            if self.left(begun) == 0:
                for before, _ in self._listing.leading(begun):
                    self._nowhere[before].drop()
                self._endings.subtract(begun[:length] for length in range(len(begun)))
            self._gone[begun] -= 1

    def left(self, begun: bytes) -> int:
        """How many that begin so are not there; MANY stands for all numbers from there on."""
        count = self._listing.count(begun)
        return count if count >= MANY else count - self._gone[begun]

    def leading_nowhere(self, begun: bytes) -> GrowingSet:
        """The tokens that go on with what all strings that begin so, and are there, go on with, and no other does."""
        return self._nowhere.get(begun, _NO_TOKENS)

    def may_end(self, begun: bytes) -> bool:
        """Whether a string that has begun so may go on to where none is left."""
        return self._endings[begun] > 0

    def _counted_in(self, name: bytes) -> list[bytes]:
        return [begun for length in range(len(name) + 1) if self._listing.count(begun := name[:length]) < MANY]


class Listing:
    """Some strings. `count`: how many of them begin so, in UTF-8. `into` and `through`: as in `Counted`."""

    def __init__(self, tokens: NameTokens, count: Callable[[bytes], int]) -> None:
        self.count = count
        self.into, self.through = _into_few(tokens, tokens.into, 1, count), _into_few(tokens, tokens.through, 2, count)
        self._tokens = tokens
        self._known: dict[bytes, tuple[tuple[bytes, int], ...]] = {}

    def leading(self, begun: bytes) -> tuple[tuple[bytes, int], ...]:
        """The beginnings and tokens that come to this one."""
        if (found := self._known.get(begun)) is None:
            if len(self._known) > MOST_BEGINNINGS:
                self._known = {}
            first = max(0, len(begun) - self._tokens.longest_plain)
            found = tuple((begun[:at], token) for at in range(first, len(begun)) for token in self._tokens.plain.get(begun[at:], ()))
            self._known[begun] = found
        return found


def _into_few(tokens: NameTokens, some: TokenSet, quotes: int, count: Callable[[bytes], int]) -> TokenSet:
    """Those tokens that may lead to where strings can be counted: all but such as have so many quotes, and behind the last of them what
    endlessly many begin with."""

    def is_among_many(text: bytes) -> bool:
        return text.count(b'"') == quotes and b"\\" not in text and count(text[text.rindex(b'"') + 1 :]) >= MANY

    return token_set(token for token in some.tokens.tolist() if not is_among_many(tokens.text(token)))


@lru_cache(maxsize=REMEMBERED)
def _listing(tokens: NameTokens, listed: tuple[str, ...]) -> Listing:
    texts = [item.encode("utf-8", "surrogatepass") for item in listed]
    beginnings = Counter(text[:length] for text in texts for length in range(len(text) + 1))
    return Listing(tokens, lambda begun: beginnings[begun])


@lru_cache(maxsize=REMEMBERED)
def _language(tokens: NameTokens, language: Language) -> Listing:
    return Listing(tokens, Beginnings(language.moves, language.accepting).count)


class ItemSet:
    """Its strings and numbers; it can have no other items. `counted`: its strings, where they may run out; `is_whole`: its
    numbers are."""

    def __init__(self, tokens: NameTokens, items: Items) -> None:
        self.counted: Counted | None = None
        if items.listed is not None:
            self.counted = Counted(tokens, _listing(tokens, items.listed))
        elif items.language is not None:
            self.counted = Counted(tokens, _language(tokens, items.language))
        self.strings = Names(tokens) if self.counted is None else self.counted
        self.numbers = Numbers()
        self.is_whole = items.whole

    def can_become(self, text: bytes, pending: bytes, added: Collection[bytes]) -> bool:
        """Whether a string that has begun so, perhaps with the start of an escape, can become one that is neither there nor `added`."""
        if self.counted is None:
            return True
        further = [text + byte for byte in _ESCAPED] if pending else [text]
        return any(self.counted.left(begun) > sum(other.startswith(begun) for other in added) for begun in further)

    def is_stuck(self, text: bytes, added: Iterable[bytes]) -> bool:
        """Whether a number that has begun so can only become one that is there, or `added`: nothing follows a whole zero."""
        if not self.is_whole or text not in (b"0", b"-0"):
            return False
        return text in self.numbers or any(self.numbers.is_same(text, other) for other in added)
