"""Schemas of offices and shops."""

from __future__ import annotations

from load_tests.corpus.families.building import (
    Schema,
    flag,
    formatted,
    many,
    names,
    nullable,
    number,
    one_of,
    record,
    spelled,
    text,
    unspelled,
    whole,
)

CURRENCIES = ("EUR", "USD", "GBP", "CHF", "JPY", "SEK", "PLN", "CAD", "AUD", "INR")


def business() -> dict[str, Schema]:
    """Schemas by name."""
    return {
        "person": record({"name": text(), "age": whole(0, 150)}),
        "sentiment": record({"label": one_of(["positive", "neutral", "negative"]), "score": number()}),
        "address": _address(),
        "contact_card": _contact(),
        "order": _order(),
        "invoice": _invoice(),
        "support_ticket": _ticket(),
        "meeting_minutes": _minutes(),
        "expense_report": _expenses(),
        "curriculum_vitae": unspelled(_curriculum()),
        "product_page": unspelled(_product()),
        "booking": _booking(),
        "payment_event": _payment(),
        "contract_clauses": _contract(),
        "survey": _survey(),
        "translation_pairs": names(record({"source": text(), "target": text()})),
    }


def _address() -> Schema:
    return record(
        {"street": text(), "city": text(), "postal_code": spelled("^[0-9]{5}$"), "country": spelled("^[A-Z]{2}$")},
        {"floor": whole(), "note": text()},
    )


def _money() -> Schema:
    return record({"amount": number(0), "currency": one_of(CURRENCIES)})


def _contact() -> Schema:
    phone = record({"kind": one_of(["home", "work", "mobile"]), "digits": spelled("^\\+?[0-9]{6,15}$")})
    return record({"full_name": text(), "emails": many(formatted("email"), 1)}, {"phones": many(phone), "address": _address()})


def _order() -> Schema:
    line = record({"sku": spelled("^[A-Z]{3}-[0-9]{4}$"), "quantity": whole(1, 999), "price": _money()}, {"gift_note": text()})
    return record(
        {"order_id": formatted("uuid"), "placed_at": formatted("date-time"), "customer": _contact(), "lines": many(line, 1)},
        {"coupon": text(), "express": flag(), "ship_to": _address(), "bill_to": _address()},
    )


def _invoice() -> Schema:
    position = record({"text": text(), "units": number(0), "unit_price": number(0), "tax_rate": one_of([0, 0.07, 0.19])})
    return record(
        {
            "number": spelled("^INV-[0-9]{4}-[0-9]{6}$"),
            "issued": formatted("date"),
            "due": formatted("date"),
            "seller": record({"name": text(), "address": _address(), "tax_id": spelled("^[A-Z]{2}[0-9]{9}$")}),
            "buyer": record({"name": text(), "address": _address()}),
            "positions": many(position, 1, 200),
            "total": _money(),
        },
        {"terms": text(), "discount": nullable(number(0, 100)), "paid": flag()},
    )


def _ticket() -> Schema:
    comment = record({"author": text(), "at": formatted("date-time"), "body": text()}, {"internal": flag()})
    return record(
        {
            "title": text(120, 1),
            "severity": one_of(["low", "medium", "high", "critical"]),
            "component": one_of(["web", "api", "billing", "search", "mobile", "data", "other"]),
            "steps": many(text(), 1, 10),
        },
        {"assignee": nullable(formatted("email")), "labels": many(text()), "comments": many(comment), "duplicate_of": whole(1)},
    )


def _minutes() -> Schema:
    action = record({"owner": text(), "what": text(), "due": nullable(formatted("date"))})
    return record({"date": formatted("date"), "attendees": many(text(), 1), "decisions": many(text()), "actions": many(action)})


def _expenses() -> Schema:
    item = record(
        {"day": formatted("date"), "category": one_of(["travel", "meal", "hotel", "other"]), "cost": _money()},
        {"receipt": formatted("uri"), "guests": many(text()), "kilometres": number(0)},
    )
    return record({"employee": text(), "period": spelled("^[0-9]{4}-(0[1-9]|1[0-2])$"), "items": many(item, 1)}, {"approved_by": text()})


def _curriculum() -> Schema:
    job = record({"employer": text(), "title": text(), "from": formatted("date")}, {"to": formatted("date"), "achievements": many(text())})
    school = record({"name": text(), "degree": text(), "year": whole(1900, 2100)}, {"grade": text()})
    skill = record({"name": text(), "level": one_of(["basic", "good", "expert"])})
    return record(
        {"name": text(), "jobs": many(job), "schools": many(school)},
        {"email": formatted("email"), "phone": text(), "skills": many(skill), "languages": many(text()), "summary": text()},
    )


def _product() -> Schema:
    variant = record({"sku": text(), "colour": text(), "size": one_of(["XS", "S", "M", "L", "XL"])}, {"stock": whole(0), "price": _money()})
    return record(
        {"name": text(), "brand": text(), "variants": many(variant, 1)},
        {
            "description": text(),
            "weight_g": number(0),
            "rating": number(0, 5),
            "images": many(formatted("uri")),
            "attributes": names(text()),
            "related": many(text()),
            "discontinued": flag(),
        },
    )


def _booking() -> Schema:
    traveller = record(
        {"first_name": text(40, 1), "last_name": text(40, 1), "born": formatted("date")}, {"passport": spelled("^[A-Z0-9]{9}$")}
    )
    leg = record({"from": spelled("^[A-Z]{3}$"), "to": spelled("^[A-Z]{3}$"), "departs": formatted("date-time"), "cabin": one_of("FCWY")})
    return record(
        {"reference": spelled("^[A-Z0-9]{6}$"), "travellers": many(traveller, 1, 9), "legs": many(leg, 1, 6)}, {"seats": many(text())}
    )


def _payment() -> Schema:
    card = record({"method": {"const": "card"}, "last_four": spelled("^[0-9]{4}$"), "expires": spelled("^(0[1-9]|1[0-2])/[0-9]{2}$")})
    transfer = record({"method": {"const": "transfer"}, "iban": spelled("^[A-Z]{2}[0-9]{2}[A-Z0-9]{10,30}$")})
    wallet = record({"method": {"const": "wallet"}, "provider": text(), "token": formatted("uuid")})
    return record({"id": formatted("uuid"), "total": _money(), "source": {"oneOf": [card, transfer, wallet]}}, {"refunded": flag()})


def _contract() -> Schema:
    clause = record(
        {"number": spelled("^[0-9]+(\\.[0-9]+)*$"), "heading": text(80), "text": text(400)},
        {"obliges": one_of(["buyer", "seller", "both"]), "deadline": formatted("date")},
    )
    return record({"title": text(200), "parties": many(text(), 2, 8), "clauses": many(clause, 1)}, {"governing_law": text(60)})


def _survey() -> Schema:
    scale = {f"question_{index:02}": one_of([1, 2, 3, 4, 5]) for index in range(1, 26)}
    return record({"respondent": formatted("uuid"), **scale}, {"remarks": text()})
