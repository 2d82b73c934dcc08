"""Schemas of health records, maps, measurements and logs."""

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
    refer,
    spelled,
    text,
    unspelled,
    whole,
)


def records() -> dict[str, Schema]:
    """Schemas by name."""
    return {
        "patient": unspelled(_patient()),
        "observation": _observation(),
        "prescription": _prescription(),
        "care_bundle": _bundle(),
        "map_point": _point(),
        "map_features": _features(),
        "sensor_reading": _reading(),
        "log_event": _log_event(),
        "metric_series": _series(),
        "weather_report": _weather(),
        "citation_list": unspelled(_citations()),
    }


def _coding() -> Schema:
    return record({"system": formatted("uri"), "code": text()}, {"display": text(), "version": text()})


def _concept() -> Schema:
    return record({"coding": many(_coding(), 1)}, {"text": text()})


def _patient() -> Schema:
    name = record({"family": text(), "given": many(text(), 1)}, {"prefix": many(text()), "use": one_of(["official", "usual", "maiden"])})
    contact = record({"relationship": _concept(), "name": name}, {"phone": text()})
    return record(
        {"record": {"const": "patient"}, "id": formatted("uuid"), "name": many(name, 1), "born": formatted("date")},
        {
            "sex": one_of(["female", "male", "other", "unknown"]),
            "deceased": flag(),
            "contacts": many(contact),
            "languages": many(spelled("^[a-z]{2}(-[A-Z]{2})?$")),
            "marital_status": _concept(),
            "general_practitioner": text(),
        },
    )


def _observation() -> Schema:
    quantity = record({"value": number(), "unit": text()}, {"comparator": one_of(["<", "<=", ">=", ">"])})
    part = record({"code": _concept()}, {"quantity": quantity, "text": text()})
    return record(
        {"record": {"const": "observation"}, "status": one_of(["registered", "final", "amended"]), "code": _concept(), "subject": text()},
        {"taken": formatted("date-time"), "quantity": quantity, "range": record({"low": number(), "high": number()}), "parts": many(part)},
    )


def _prescription() -> Schema:
    dose = record(
        {"amount": number(0), "unit": one_of(["mg", "ml", "tablet", "drop"]), "every_hours": whole(1, 168)}, {"as_needed": flag()}
    )
    return record(
        {"record": {"const": "prescription"}, "drug": _concept(), "dose": many(dose, 1, 5), "from": formatted("date")},
        {"until": formatted("date"), "reason": text(), "substitution": flag()},
    )


def _bundle() -> Schema:
    entries = {"anyOf": [_patient(), _observation(), _prescription()]}
    return record({"kind": one_of(["document", "message"]), "made": formatted("date-time"), "entries": many(entries, 1)})


def _position() -> Schema:
    return many(number(), 2, 3)


def _point() -> Schema:
    return record({"type": {"const": "Point"}, "coordinates": _position()})


def _features() -> Schema:
    shapes = [
        _point(),
        record({"type": {"const": "LineString"}, "coordinates": many(_position(), 2)}),
        record({"type": {"const": "Polygon"}, "coordinates": many(many(_position(), 4), 1)}),
    ]
    feature = record({"type": {"const": "Feature"}, "geometry": refer("geometry"), "properties": names(text())}, {"id": whole()})
    collection = record({"type": {"const": "FeatureCollection"}, "features": many(feature)})
    return {**collection, "$defs": {"geometry": {"oneOf": shapes}}}


def _reading() -> Schema:
    return record(
        {"device": spelled("^[0-9a-f]{2}(:[0-9a-f]{2}){5}$"), "at": formatted("date-time"), "celsius": number(-90, 60)},
        {"humidity": number(0, 100), "battery": whole(0, 100), "firmware": spelled("^[0-9]+\\.[0-9]+\\.[0-9]+$")},
    )


def _log_event() -> Schema:
    return record(
        {"at": formatted("date-time"), "level": one_of(["debug", "info", "warning", "error"]), "message": text()},
        {"host": text(), "address": formatted("ipv4"), "trace": spelled("^[0-9a-f]{32}$"), "fields": names({"type": ["string", "number"]})},
    )


def _series() -> Schema:
    sample = {"type": "array", "prefixItems": [whole(0), number()], "items": False, "minItems": 2}
    return record({"metric": spelled("^[a-z_][a-z0-9_]*$"), "labels": names(text()), "samples": many(sample)}, {"unit": text()})


def _weather() -> Schema:
    hour = record({"hour": whole(0, 23), "celsius": number(-90, 60), "sky": one_of(["clear", "cloudy", "rain", "snow", "fog"])})
    return record({"station": text(), "date": formatted("date"), "hours": many(hour, 24, 24)}, {"warnings": many(text())})


def _citations() -> Schema:
    work = record(
        {"title": text(), "authors": many(text(), 1), "year": whole(1400, 2100), "kind": one_of(["article", "book", "thesis", "web"])},
        {"journal": text(), "volume": nullable(whole(1)), "pages": spelled("^[0-9]+-[0-9]+$"), "doi": spelled("^10\\.[0-9]{4,9}/.+$")},
    )
    return many(work)
