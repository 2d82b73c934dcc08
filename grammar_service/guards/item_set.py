"""The items that one open array has, where none may come twice, and names of an object that has no others."""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal
from functools import lru_cache

from grammar_service.guards.distinct_items import Items
from grammar_service.guards.forms import CountedStrings, Language
from grammar_service.guards.names import Names
from grammar_service.guards.tokens.name_tokens import NameTokens
from grammar_service.guards.tokens.token_set import GrowingSet, TokenSet, token_set
from grammar_service.regexes.counted import MANY, Beginnings

_NO_TOKENS = GrowingSet()
REMEMBERED = 64
"""Lists and languages of strings of which it is kept which tokens of a vocabulary lead there."""
_BEHIND_ALL = b"\xff"
"""No UTF-8 has it."""
_SHORT, _MOST_KNOWN = 64, 1_000
"""Bytes of a string, and strings, of which it is remembered which tokens lead there: some megabytes of a list at most."""
_LONGEST_ESCAPE = len(b"\\ud83d\\ude00")
NUMBERED = tuple(chr(byte) for byte in (*range(0x20), 0x7F))
"""Characters that llguidance writes by their numbers, too, or only so."""
_ESCAPES = {
    **{byte.encode(): (json.dumps(byte)[1:-1],) for byte in '"\\'},
    **{byte.encode(): (json.dumps(byte)[1:-1], f"\\u{ord(byte):04x}") for byte in NUMBERED},
}


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


class Sorted:
    """Texts in their order, so that those that begin in some way are counted without keeping what each begins with: of long texts that
    would be the square of their length."""

    def __init__(self, texts: Iterable[bytes] = ()) -> None:
        self._texts = sorted(texts)

    def count(self, begun: bytes) -> int:
        """How many begin so."""
        first = bisect_left(self._texts, begun)
        return bisect_left(self._texts, begun + _BEHIND_ALL, first) - first

    def add(self, text: bytes) -> None:
        insort(self._texts, text)

    def drop(self, text: bytes) -> None:
        del self._texts[bisect_left(self._texts, text)]


class Counted(Names):
    """The strings of an array, or the names of an object, that has no others; it knows how many are left that begin in some way, and what
    leads to none."""

    def __init__(self, tokens: NameTokens, listing: Listing) -> None:
        super().__init__(tokens)
        self._listing = listing
        self._gone = Sorted()
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
        self._gone.add(name)
        spent = self._spent_from(name)
        for before, token in self._listing.leading(name, spent):
            self._nowhere[before].add(token)
        self._endings.update(self._listing.near(name, spent))

    def drop(self, name: bytes) -> None:
        super().drop(name)
        spent = self._spent_from(name)
        for before, _ in self._listing.leading(name, spent):
            self._nowhere[before].drop()
        self._endings.subtract(self._listing.near(name, spent))
        self._gone.drop(name)

    def left(self, begun: bytes) -> int:
        """How many that begin so are not there; MANY stands for all numbers from there on."""
        count = self._listing.count(begun)
        return count if count >= MANY else count - self._gone.count(begun)

    def can_become(self, text: bytes, pending: bytes, added: Collection[bytes]) -> bool:
        """Whether a string that has begun so, perhaps with the start of an escape, can become one that is neither there nor `added`."""
        begun = pending.decode().lower()
        further = (
            [text + byte for byte, escapes in _ESCAPES.items() if any(escape.startswith(begun) for escape in escapes)]
            if pending
            else [text]
        )
        return any(self.left(longer) > sum(other.startswith(longer) for other in added) for longer in further)

    def leading_nowhere(self, begun: bytes) -> GrowingSet:
        """The tokens that go on with what all strings that begin so, and are there, go on with, and no other does."""
        return self._nowhere.get(begun, _NO_TOKENS)

    def may_end(self, begun: bytes) -> bool:
        """Whether a string that has begun so may go on, by one token, to where none is left."""
        return self._endings[begun] > 0

    def _spent_from(self, name: bytes) -> int:
        """How much of a string that is there leaves no other; one byte more than it has, where others go on with all of it."""
        return bisect_left(range(len(name) + 1), True, key=lambda length: self.left(name[:length]) == 0)


class Listing:
    """Some strings. `count`: how many of them begin so, in UTF-8. `into` and `through`: as in `Counted`."""

    def __init__(self, tokens: NameTokens, count: Callable[[bytes], int]) -> None:
        self.count = count
        self.into, self.through = _into_few(tokens, tokens.into, 1, count), _into_few(tokens, tokens.through, 2, count)
        self._tokens = tokens
        self._known: dict[tuple[bytes, int], tuple[tuple[bytes, int], ...]] = {}

    def leading(self, name: bytes, spent: int) -> Iterable[tuple[bytes, int]]:
        """The tokens that come to `spent` bytes of a string, or to more of it, with its beginnings that they go on with."""
        if len(name) > _SHORT:
            return self._leading(name, spent)
        # Arrays of one schema have the same strings again and again.
        if (found := self._known.get((name, spent))) is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known = {}
            found = self._known[name, spent] = tuple(self._leading(name, spent))
        return found

    def _leading(self, name: bytes, spent: int) -> Iterator[tuple[bytes, int]]:
        longest = self._tokens.longest_plain
        for at in range(max(0, spent - longest), min(spent, len(name))):
            for end in range(spent, min(len(name), at + longest) + 1):
                for token in self._tokens.plain.get(name[at:end], ()):
                    yield name[:at], token

    def near(self, name: bytes, spent: int) -> Iterator[bytes]:
        """The beginnings of a string from which one token may come to `spent` bytes of it, where it has so many."""
        if spent <= len(name):
            reach = self._tokens.longest_token + _LONGEST_ESCAPE
            yield from (name[:at] for at in range(max(0, spent - reach), spent))


def _into_few(tokens: NameTokens, some: TokenSet, quotes: int, count: Callable[[bytes], int]) -> TokenSet:
    """Those tokens that may lead to where strings can be counted: all but such as have so many quotes, and behind the last of them what
    endlessly many begin with."""

    def is_among_many(text: bytes) -> bool:
        return text.count(b'"') == quotes and b"\\" not in text and count(text[text.rindex(b'"') + 1 :]) >= MANY

    return token_set(token for token in some.tokens.tolist() if not is_among_many(tokens.text(token)))


@lru_cache(maxsize=REMEMBERED)
def listing(tokens: NameTokens, listed: tuple[str, ...]) -> Listing:
    texts = [item.encode("utf-8", "surrogatepass") for item in listed]
    return Listing(tokens, Sorted(texts).count)


@lru_cache(maxsize=REMEMBERED)
def _language(tokens: NameTokens, language: Language) -> Listing:
    return Listing(tokens, Beginnings(language.moves, language.accepting).count)


def listing_of(tokens: NameTokens, strings: CountedStrings) -> Listing:
    return listing(tokens, strings.listed) if strings.language is None else _language(tokens, strings.language)


class ItemSet:
    """Its strings and numbers; it can have no other items. `counted`: its strings, where they may run out; `is_whole`: its
    numbers are."""

    def __init__(self, tokens: NameTokens, items: Items) -> None:
        self.counted = None if items.strings is None else Counted(tokens, listing_of(tokens, items.strings))
        self.strings = Names(tokens) if self.counted is None else self.counted
        self.numbers = Numbers()
        self.is_whole = items.whole

    def can_become(self, text: bytes, pending: bytes, added: Collection[bytes]) -> bool:
        """As `Counted.can_become`."""
        return self.counted is None or self.counted.can_become(text, pending, added)

    def is_stuck(self, text: bytes, added: Iterable[bytes]) -> bool:
        """Whether a number that has begun so can only become one that is there, or `added`: nothing follows a whole zero."""
        if not self.is_whole or text not in (b"0", b"-0"):
            return False
        return text in self.numbers or any(self.numbers.is_same(text, other) for other in added)
