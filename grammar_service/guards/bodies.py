"""What has been written of an item that may be of any kind, so far that its equality with others is told in time.

Values are held as something hashable that is equal where JSON Schema calls them equal: strings as bytes, numbers as Decimal, `true`,
`false` and `null` by their names, arrays as tuples and objects as frozen sets of members. What is compared at each token, states and the
values on the way to them, are digests: of an item of 50,000 tokens they would be compared for seconds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any, NamedTuple

from grammar_service.guards.forms import ENOUGH, FREE, CountedStrings, Form, Layout, Slot, times
from grammar_service.guards.item_set import Counted, listing_of
from grammar_service.guards.names import Names
from grammar_service.guards.tokens.name_tokens import NameTokens

MAX_NESTED_ITEMS = 128
"""Arrays and objects in each other inside of one item; a request with more of them ends. To close them takes time that grows with the
square of their number: of 32,000, the last bracket took 6 s."""
_START = bytes(16)
"""The state before an item."""
_DIGITS = 30
"""Numbers with more are in no schema's lists."""
_TYPES: dict[type, str] = {bytes: "string", Decimal: "number", tuple: "array", frozenset: "object"}


class VisitedState(NamedTuple):
    """A state that an item passed through. `text`: the string that led there from the state `begun`, if it is one of `strings`, and is
    spent when as many items as there are `ways` have passed."""

    state: bytes
    ways: int = ENOUGH
    text: bytes = b""
    begun: bytes = b""
    strings: CountedStrings | None = None


class Item(NamedTuple):
    """A complete item, and what it passed through, where ways to go on are counted."""

    value: Hashable
    passed: tuple[VisitedState, ...]


class Values:
    """The items of one open array, its strings in `strings` too; `inner` are all strings inside of them; `ending` the same, by the
    tokens that close a bracket behind one. `site`: where each is written; `forms`: those of the grammar."""

    def __init__(self, tokens: NameTokens, form: int, forms: Sequence[Form]) -> None:
        self.site = Site(self, () if form == FREE else (form,), _START)
        self.forms = forms
        self._tokens = tokens
        self.strings = Names(tokens)
        # Where nothing is counted nobody asks how one of them would end.
        self.inner = Names(tokens, {} if form == FREE else None)
        self.ending = Names(tokens, tokens.ending)
        self._contents: Counter[Hashable] = Counter()
        self._held: set[Hashable] = set()
        self._passed: Counter[bytes] = Counter()
        self._counted: dict[bytes, Counted] = {}
        self._strings: dict[tuple[int, ...], CountedStrings | None] = {}

    def is_new(self, value: Hashable, added: Sequence[tuple[Any, Any]]) -> bool:
        """Whether it is neither there nor among the added ones."""
        return value not in self._held and not any(held is self and item.value == value for held, item in added)

    def has_more(self, added: Added) -> bool:
        """Whether there is one more item than those that are there."""
        return self._ways >= ENOUGH or len(self._held) + sum(held is self for held, _ in added) < self._ways

    @property
    def has_plenty(self) -> bool:
        """Whether there are two more."""
        return self._ways >= ENOUGH or len(self._held) + 1 < self._ways

    @property
    def _ways(self) -> int:
        return sum(self.forms[index].count for index in self.site.forms) if self.site.forms else ENOUGH

    def __bool__(self) -> bool:
        return bool(self._held)

    def passed(self, state: bytes, added: Sequence[tuple[Any, Any]] = ()) -> int:
        """How many items came through a state."""
        here: int = sum(one.state == state for held, item in added if held is self for one in item.passed)
        return self._passed[state] + here

    def strings_at(self, forms: tuple[int, ...]) -> CountedStrings | None:
        """Those of some forms, where they may run out. Several forms that have some list them, or have the same."""
        if forms not in self._strings:
            found = [self.forms[index] for index in forms if index != FREE]
            few = list(dict.fromkeys(form.strings for form in found if form.strings is not None))
            listed = CountedStrings(tuple(sorted({text for strings in few for text in strings.listed})))
            ends = bool(few) and not any("string" in form.endless for form in found)
            self._strings[forms] = None if not ends else few[0] if len(few) == 1 else listed
        return self._strings[forms]

    def remaining_strings(self, state: bytes, strings: CountedStrings) -> Counted:
        """The `strings` that can still follow a state: those that are not spent."""
        if (known := self._counted.get(state)) is None:
            known = self._counted[state] = Counted(self._tokens, listing_of(self._tokens, strings))
        return known

    def strings_spent_by(self, added: Added, state: bytes) -> list[bytes]:
        """The strings behind a state that added items have spent."""
        here = [item for held, item in added if held is self]
        return [
            one.text
            for item in here
            for one in (*item.passed, *self._as_visited(item))
            if one.strings is not None and one.begun == state and self.passed(one.state, added) >= one.ways
        ]

    def contains(self, value: Hashable) -> bool:
        """Whether an item is it, or holds it."""
        return self._contents[value] > 0

    def add(self, item: Item) -> None:
        self._held.add(item.value)
        self._passed.update((_START, *(one.state for one in item.passed)))
        for one in self._just_spent(item):
            assert one.strings is not None, "a string is spent"
            self.remaining_strings(one.begun, one.strings).add(one.text)
        if isinstance(item.value, bytes):
            self.strings.add(item.value)
        for value in _contents(item.value):
            self._contents[value] += 1
            if isinstance(value, bytes) and self._contents[value] == 1:
                self.inner.add(value)
                self.ending.add(value)

    def drop(self, item: Item) -> None:
        self._held.remove(item.value)
        for one in self._just_spent(item):
            self._counted[one.begun].drop(one.text)
        self._passed.subtract((_START, *(one.state for one in item.passed)))
        if isinstance(item.value, bytes):
            self.strings.drop(item.value)
        for value in reversed(_contents(item.value)):
            self._contents[value] -= 1
            if isinstance(value, bytes) and not self._contents[value]:
                self.inner.drop(value)
                self.ending.drop(value)

    def _just_spent(self, item: Item) -> list[VisitedState]:
        """Of what an item passed through that is counted already: the strings for which it took the last way."""
        passed = [*item.passed, *self._as_visited(item)]
        return [one for one in passed if one.strings is not None and (one.begun == one.state or self._passed[one.state] == one.ways)]

    def _as_visited(self, item: Item) -> list[VisitedState]:
        """Of a string that is an item itself, and so is spent."""
        strings = self.strings_at(self.site.forms) if isinstance(item.value, bytes) else None
        return [VisitedState(_START, 0, item.value, _START, strings)] if isinstance(item.value, bytes) and strings is not None else []


def _contents(value: Hashable) -> list[Hashable]:
    """The value and all that is in it, save numbers and words; always in the same order."""
    found, at = [value], 0
    while at < len(found):
        whole = found[at]
        parts = [part for _, part in whole] if isinstance(whole, frozenset) else whole if isinstance(whole, tuple) else ()
        found += [part for part in parts if isinstance(part, (bytes, tuple, frozenset))]
        at += 1
    return found


Added = list[tuple[Any, Any]]
"""What is complete, each with what holds it: names of an object, items of an array."""


class Site(NamedTuple):
    """Where a value of an item is written: in which array's item, the `forms` that it may have, none where nothing need be counted, and the
    state."""

    root: Values
    forms: tuple[int, ...]
    state: bytes


class Body(NamedTuple):
    """Of an open object or array inside of an item: its `site`, its members or items so far, their digests, and the states passed since.
    `depth`: how many of them are around it, with itself. `tail`: the ways to go on behind it. `layouts`: those that it may have, each with
    the next of its slots; none where nothing need be counted."""

    site: Site
    parts: tuple[Any, ...] = ()
    digests: tuple[bytes, ...] = ()
    passed: tuple[VisitedState, ...] = ()
    depth: int = 1
    tail: int = ENOUGH
    layouts: tuple[tuple[Layout, int], ...] = ()
    state: bytes = _START
    name: bytes = b""

    def value(self, is_object: bool) -> Hashable:
        return frozenset(self.parts) if is_object else tuple(self.parts)

    def digest(self, is_object: bool) -> bytes:
        """Of the value: whatever the order of an object's members."""
        return _digest(b"{", *sorted(self.digests)) if is_object else _digest(b"[", *self.digests)

    @property
    def left(self) -> int:
        """The ways to go on from here."""
        return times(self.tail, max((layout.rest[at] for layout, at in self.layouts), default=ENOUGH))


def _digest(kind: bytes, *parts: bytes) -> bytes:
    """`parts`, but for the last one, have one length."""
    return blake2b(kind + b"".join(parts), digest_size=len(_START)).digest()


def _digest_of_scalar(value: Hashable) -> bytes:
    """The same for those that are equal."""
    if isinstance(value, bytes):
        return _digest(b'"', value)
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        text = "".join(map(str, digits)).lstrip("0")
        plain = text.rstrip("0")
        return _digest(b"0", f"{sign} {plain} {int(exponent) + len(text) - len(plain)}".encode() if plain else b"")
    return _digest(b"w", str(value).encode())


def is_left(root: Values, state: bytes, ways: int, added: Added) -> bool:
    """Whether more ways lead on from a state than items have taken."""
    if ways >= ENOUGH:
        return True
    return root.passed(state, added) < ways


def opened(site: Site, is_object: bool, body: Body | None, added: Added) -> Body | None:
    """The inside of an object or array that begins there, in `body` where that is inside of the item too; None where it must not."""
    inner = Body(site)
    found = forms_at(site)
    kind = "object" if is_object else "array"
    if not found or any(kind in form.endless for form in found):
        return inner
    layouts = tuple((layout, 0) for form in found for layout in (form.objects if is_object else form.arrays))
    tail = _tail(body, kind)
    state = _digest(b"{" if is_object else b"[", site.state)
    inner = Body(site, tail=tail, layouts=layouts, state=state)
    if not layouts or not is_left(site.root, state, inner.left, added):
        return None
    return inner._replace(passed=(VisitedState(state),))


def _tail(body: Body | None, kind: str) -> int:
    """The ways to go on behind a value of that type, that is written next; the item ends with it where there is no body."""
    if body is None:
        return 1
    rests = [layout.rest[at + 1] for layout, at in body.layouts if at < len(layout.slots) and _is_told(layout.slots[at], kind)]
    return times(body.tail, max(rests, default=ENOUGH if not body.layouts else 0))


def _is_told(slot: Slot, kind: str, text: str = "") -> bool:
    """Whether a value may stand in a slot: by its type, or its text where that is listed."""
    return kind in slot.tells or f"some {kind}" in slot.tells or (kind == "number" and "integer" in slot.tells) or text in slot.tells


def named(body: Body, name: bytes, added: Added) -> Body | None:
    """With the name of the next member, whose value stands at `site_in` it; None where it must not come."""
    if not body.layouts:
        return body._replace(name=name)
    text = name.decode("utf-8", "surrogatepass")
    starts = [(layout, layout.start_of(text, at)) for layout, at in body.layouts]
    layouts = tuple((layout, at) for layout, at in starts if at is not None)
    ways = max((times(layout.slots[at].count, layout.rest[at + 1]) for layout, at in layouts), default=0)
    state = _digest(b"n", body.state, name)
    if not is_left(body.site.root, state, times(body.tail, ways), added):
        return None
    return body._replace(name=name, layouts=layouts, state=state, passed=(*body.passed, VisitedState(state)))


def with_comma(body: Body, added: Added) -> Body | None:
    """Of an object that goes on; None where it must end."""
    if not body.layouts:
        return body
    rests = (
        layout.rest[at] - (0 if layout.rest[at] >= ENOUGH or any(slot.required for slot in layout.slots[at:]) else 1)
        for layout, at in body.layouts
    )
    ways, state = times(body.tail, max(rests)), _digest(b",", body.state)
    if not is_left(body.site.root, state, ways, added):
        return None
    return body._replace(state=state, passed=(*body.passed, VisitedState(state)))


def has_name(body: Body, begun: bytes, pending: bytes, added: Added) -> bool:
    """Whether a name that has begun so, perhaps with the start of an escape, can become one that may come."""
    for layout, at in body.layouts:
        for slot in layout.slots[at:]:
            name = slot.name.encode("utf-8", "surrogatepass")
            if goes_on_as(name, begun, pending) and named(body, name, added) is not None:
                return True
            if slot.required:
                break
    return False


def goes_on_as(text: bytes, begun: bytes, pending: bytes) -> bool:
    """Whether a listed string begins so, where what is next may be the start of an escape."""
    if not text.startswith(begun) or not pending:
        return text.startswith(begun)
    return json.dumps(text[len(begun) :].decode("utf-8", "ignore"), ensure_ascii=False)[1:].startswith(pending.decode())


def another(body: Body, added: Added) -> Body | None:
    """The same of the next item of an array, which has no name."""
    if not body.layouts:
        return body
    return named(body, str(len(body.parts)).encode(), added)


def site_in(body: Body) -> Site:
    """Of the member or item that comes next, if one may."""
    forms = tuple(dict.fromkeys(layout.slots[at].form for layout, at in body.layouts if at < len(layout.slots)))
    return Site(body.site.root, forms, body.state)


def extended(
    body: Body, value: Hashable, digest: bytes | None, passed: tuple[VisitedState, ...], is_object: bool, added: Added
) -> Body | None:
    """With a value that has come to its end, which passed through some states; None where too few ways lead on. Scalars need no digest."""
    own = _digest_of_scalar(value) if digest is None else digest
    part, mark = ((body.name, value), _digest(b"m", own, body.name)) if is_object else (value, own)
    longer = body._replace(parts=(*body.parts, part), digests=(*body.digests, mark), passed=body.passed + passed)
    if not body.layouts:
        return longer
    kind, text = type_and_text(value)
    layouts = tuple((layout, at + 1) for layout, at in body.layouts if at < len(layout.slots) and _is_told(layout.slots[at], kind, text))
    longer = longer._replace(layouts=layouts, state=_digest(b"v", body.state, own))
    if not layouts or not is_left(body.site.root, longer.state, longer.left, added):
        return None
    one = VisitedState(longer.state)
    if isinstance(value, bytes) and (strings := body.site.root.strings_at(site_in(body).forms)) is not None:
        one = VisitedState(longer.state, longer.left, value, body.state, strings)
    return longer._replace(passed=(*longer.passed, one))


def type_and_text(value: Hashable) -> tuple[str, str]:
    """The type of a held value, and its text where that is a scalar."""
    if isinstance(value, str):
        return ("null" if value == "null" else "boolean"), value
    if isinstance(value, bytes):
        return "string", json.dumps(value.decode("utf-8", "surrogatepass"), ensure_ascii=False)
    return _TYPES[type(value)], _number_text(value) if isinstance(value, Decimal) else ""


def _number_text(number: Decimal) -> str:
    """As a schema's lists have it."""
    if not number:
        return "0"
    return format(number.normalize(), "f") if abs(number.adjusted()) < _DIGITS else ""


def value_of(text: str) -> Hashable:
    """What is held for the JSON text of a scalar, but for strings."""
    return text if text in ("true", "false", "null") else Decimal(text)


def forms_at(site: Site) -> list[Form]:
    """Those in which something is counted."""
    return [site.root.forms[index] for index in site.forms if index != FREE]


def is_free(site: Site) -> bool:
    """Whether nothing need be counted there."""
    return all(index == FREE for index in site.forms)


def begins(text: str, begun: str) -> bool:
    """Whether the text of a listed scalar, other than a string, may begin so."""
    return text.startswith(begun) or (text.lstrip("-").isdigit() and f"{text}.0".startswith(begun))
