"""Synthetic documents with their facts: six kinds in varied wordings, and plain forms with fields of any name.

A document is a handful of sentences in random order, each of which states one fact. Every draw comes from the
`random.Random` that is passed in, so a seed fixes the document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from model_service.embedded import vocabulary as words

Value: TypeAlias = str | int | float | bool | list[str]


@dataclass(frozen=True)
class Field:
    """One fact: how its value is drawn, and the sentences that can state it (`{}` stands for the value)."""

    name: str
    draw: Callable[[Random], Value]
    sentences: tuple[str, ...] = ()
    when_false: tuple[str, ...] = ()

    def sentence(self, value: Value, rng: Random) -> str:
        if isinstance(value, bool):
            return rng.choice(self.sentences if value else self.when_false)
        text = " and ".join(value) if isinstance(value, list) else f"{value:.2f}" if isinstance(value, float) else str(value)
        return rng.choice(self.sentences).format(text)


@dataclass(frozen=True)
class Kind:
    """One family of documents: its name, the tool that would record it, and its facts; the first one opens the text."""

    name: str
    tool: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Document:
    kind: Kind
    text: str
    facts: dict[str, Value]


def _one_of(values: tuple[str, ...]) -> Callable[[Random], Value]:
    return lambda rng: rng.choice(values)


def _between(low: int, high: int) -> Callable[[Random], Value]:
    return lambda rng: rng.randint(low, high)


def _two_of(values: tuple[str, ...]) -> Callable[[Random], Value]:
    return lambda rng: rng.sample(values, 2)


def _person(rng: Random) -> str:
    return f"{rng.choice(words.FIRST_NAMES)} {rng.choice(words.LAST_NAMES)}"


def _email(rng: Random) -> str:
    return f"{rng.choice(words.FIRST_NAMES).lower()}@{rng.choice(words.COMPANIES).lower()}.com"


def _code(letter: str) -> Callable[[Random], Value]:
    return lambda rng: f"{letter}-{rng.randint(1000, 9999)}"


def _price(rng: Random) -> float:
    return round(rng.randint(100, 9999) / 100, 2)


def _truth(rng: Random) -> bool:
    return rng.random() < 0.5


def _date(rng: Random) -> str:
    return f"{rng.randint(1, 28)} {rng.choice(words.MONTHS)} {rng.randint(2020, 2029)}"


def _street(rng: Random) -> str:
    return f"{rng.choice(words.STREETS)} {rng.choice(words.STREET_KINDS)}"


def _event(rng: Random) -> str:
    return f"{rng.choice(words.EVENT_NAMES)} {rng.choice(words.EVENT_KINDS)}"


# fmt: off  (one fact a line reads as the table that it is)
PERSON = Kind(
    "person",
    "record_person",
    (
        Field("name", _person, ("This is about {}.", "Meet {}.", "Please welcome {}.", "The profile belongs to {}.")),
        Field("age", _between(18, 90), ("The person is {} years old.", "Age: {}.", "At {} years of age, there is much to tell.")),
        Field("job", _one_of(words.JOBS), ("Works as {}.", "The profession is {}.", "Earns a living as {}.")),
        Field("city", _one_of(words.CITIES), ("Lives in {}.", "Home is {}.", "The place of residence is {}.")),
        Field("email", _email, ("The email address is {}.", "Write to {}.", "Contact: {}.")),
        Field("languages", _two_of(words.LANGUAGES), ("Speaks {}.", "The spoken languages are {}.", "Is fluent in {}.")),
        Field("married", _truth, ("Is married.", "Has a spouse."), ("Is not married.", "Is single.")),
    ),
)
ORDER = Kind(
    "order",
    "record_order",
    (
        Field("order_id", _code("A"), ("Order {} has come in.", "We confirm order {}.", "The order number is {}.")),
        Field("customer", _person, ("It was placed by {}.", "The customer is {}.", "The buyer is {}.")),
        Field("item", _one_of(words.ITEMS), ("The article is a {}.", "What was bought is the {}.", "Item: {}.")),
        Field("quantity", _between(1, 99), ("The quantity is {}.", "{} pieces were ordered.", "Number of units: {}.")),
        Field("price", _price, ("It costs {} euros.", "The price is {}.", "To pay: {}.")),
        Field(
            "express",
            _truth,
            ("Express delivery was chosen.", "It ships by express."),
            ("Standard delivery is fine.", "It ships without hurry."),
        ),
        Field("city", _one_of(words.CITIES), ("It goes to {}.", "The parcel is sent to {}.", "Destination: {}.")),
    ),
)
EVENT = Kind(
    "event",
    "record_event",
    (
        Field("title", _event, ("You are invited to the {}.", "Save the date: {}.", "The {} is coming.")),
        Field("date", _date, ("It takes place on {}.", "The date is {}.", "Doors open on {}.")),
        Field("city", _one_of(words.CITIES), ("The location is {}.", "It is held in {}.", "Come to {}.")),
        Field("organizer", _one_of(words.COMPANIES), ("The organizer is {}.", "It is hosted by {}.", "{} runs it.")),
        Field(
            "attendees", _between(20, 990), ("About {} attendees are expected.", "{} guests have registered.", "There are seats for {}.")
        ),
        Field("topics", _two_of(words.TOPICS), ("The topics are {}.", "Talks cover {}.", "It is all about {}.")),
        Field("free", _truth, ("Entry is free.", "No ticket is needed."), ("Tickets must be bought.", "There is an entry fee.")),
    ),
)
ADDRESS = Kind(
    "address",
    "record_address",
    (
        Field("street", _street, ("The house stands on {}.", "Street: {}.", "You will find it on {}.")),
        Field("number", _between(1, 299), ("The house number is {}.", "It is number {}.", "Look for number {}.")),
        Field("city", _one_of(words.CITIES), ("The city is {}.", "It lies in {}.", "Town: {}.")),
        Field("postcode", _between(10000, 99999), ("The postcode is {}.", "Postal code: {}.", "The zip code reads {}.")),
        Field("country", _one_of(words.COUNTRIES), ("The country is {}.", "That is in {}.", "Country: {}.")),
        Field("resident", _person, ("The resident is {}.", "{} lives there.", "Letters go to {}.")),
    ),
)
TICKET = Kind(
    "ticket",
    "record_ticket",
    (
        Field("ticket_id", _code("T"), ("Ticket {} was opened.", "This concerns ticket {}.", "The ticket number is {}.")),
        Field("customer", _person, ("The caller is {}.", "It was reported by {}.", "{} asked for help.")),
        Field("product", _one_of(words.ITEMS), ("The product is the {}.", "It is about a {}.", "Affected device: {}.")),
        Field("problem", _one_of(words.PROBLEMS), ("The complaint: it {}.", "Reportedly it {}.", "The customer says that it {}.")),
        Field("priority", _one_of(words.PRIORITIES), ("The priority is {}.", "It was marked as {}.", "Urgency: {}.")),
        Field("status", _one_of(words.STATUSES), ("The status is {}.", "It is now {}.", "Current state: {}.")),
        Field(
            "refund",
            _truth,
            ("A refund was requested.", "The customer wants the money back."),
            ("No refund was requested.", "A refund is not needed."),
        ),
    ),
)
PRODUCT = Kind(
    "product",
    "record_product",
    (
        Field("name", _one_of(words.ITEMS), ("New in the shop: {}.", "We present the {}.", "Have a look at this {}.")),
        Field("brand", _one_of(words.COMPANIES), ("It is made by {}.", "The brand is {}.", "The maker is {}.")),
        Field("price", _price, ("It sells for {}.", "The price is {} dollars.", "Yours for {}.")),
        Field("colors", _two_of(words.COLORS), ("It comes in {}.", "Available colors: {}.", "Choose between {}.")),
        Field("stock", _between(0, 500), ("There are {} in stock.", "Stock: {} units.", "We have {} of them left.")),
        Field("sku", _code("P"), ("The article code is {}.", "SKU: {}.", "Listed under {}.")),
        Field(
            "recycled",
            _truth,
            ("It is made of recycled material.", "It uses recycled parts."),
            ("It is made of new material.", "No recycled parts are used."),
        ),
    ),
)
# fmt: on

KINDS = (PERSON, ORDER, EVENT, ADDRESS, TICKET, PRODUCT)


FORM_SHARE = 0.15


def _made_up_word(rng: Random) -> str:
    word = "".join(rng.choices(words.SYLLABLES, k=rng.randint(2, 4)))
    return word.capitalize() if rng.random() < 0.5 else word


def _form_value(rng: Random) -> Value:
    known = (words.FIRST_NAMES, words.CITIES, words.COMPANIES, words.ITEMS, words.COLORS, words.JOBS, words.TOPICS)
    draws: tuple[Callable[[Random], Value], ...] = (
        _made_up_word,
        lambda rng: f"{_made_up_word(rng)} {_made_up_word(rng)}",
        lambda rng: rng.choice(rng.choice(known)),
        _between(0, 9999),
    )
    return rng.choice(draws)(rng)


_FORM_SENTENCES = ("The {0} is {1}.", "{0}: {1}.", "Its {0} is {1}.", "{0} = {1}.")


def _draw_form(rng: Random) -> Document:
    """A form states facts under names of any sort, so that the model learns to copy what it has never seen."""
    facts = {name: _form_value(rng) for name in rng.sample(words.FORM_FIELDS, rng.randint(2, 6))}
    spoken = [(name.replace("_", " "), value) for name, value in facts.items()]
    return Document(FORM, " ".join(rng.choice(_FORM_SENTENCES).format(name, value) for name, value in spoken), facts)


FORM = Kind("form", "record_form", ())


def draw_document(rng: Random) -> Document:
    """One document of a random kind that states its opening fact and at least two others, or a form."""
    if rng.random() < FORM_SHARE:
        return _draw_form(rng)
    kind = rng.choice(KINDS)
    others = rng.sample(kind.fields[1:], rng.randint(2, len(kind.fields) - 1))
    facts: dict[str, Value] = {field.name: field.draw(rng) for field in (kind.fields[0], *others)}
    sentences = [field.sentence(facts[field.name], rng) for field in (kind.fields[0], *others)]
    return Document(kind, " ".join(sentences), facts)
