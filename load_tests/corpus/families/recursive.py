"""Schemas that refer to themselves."""

from __future__ import annotations

from load_tests.corpus.families.building import Schema, many, names, number, one_of, record, refer, text


def recursive() -> dict[str, Schema]:
    """Schemas by name."""
    return {
        "tree": _rooted("node", {"node": record({"value": text(), "children": many(refer("node"))})}),
        "linked_list": _rooted("cell", {"cell": record({"head": number()}, {"tail": refer("cell")})}),
        "comment_thread": _rooted("comment", {"comment": record({"author": text(), "text": text()}, {"replies": many(refer("comment"))})}),
        "file_system": _file_system(),
        "expression": _expression(),
        "filter_query": _filter(),
        "any_json": _any_json(),
        "page_layout": _layout(),
    }


def _rooted(name: str, definitions: dict[str, Schema]) -> Schema:
    return {"$ref": f"#/$defs/{name}", "$defs": definitions}


def _file_system() -> Schema:
    file = record({"kind": {"const": "file"}, "name": text(), "bytes": number(0)})
    folder = record({"kind": {"const": "folder"}, "name": text(), "entries": many(refer("entry"))})
    return _rooted("entry", {"entry": {"anyOf": [file, folder]}})


def _expression() -> Schema:
    binary = record({"op": one_of(["+", "-", "*", "/"]), "left": refer("term"), "right": refer("term")})
    negation = record({"op": {"const": "neg"}, "of": refer("term")})
    return _rooted("term", {"term": {"anyOf": [{"type": "number"}, binary, negation, record({"name": text()})]}})


def _filter() -> Schema:
    test = record({"field": text(), "is": one_of(["eq", "ne", "lt", "gt"]), "value": {"type": ["string", "number", "boolean", "null"]}})
    return _rooted("clause", {"clause": {"anyOf": [test, record({"all": many(refer("clause"), 1)}), record({"not": refer("clause")})]}})


def _any_json() -> Schema:
    plain = [{"type": kind} for kind in ("string", "number", "boolean", "null")]
    return _rooted("value", {"value": {"anyOf": [*plain, many(refer("value")), names(refer("value"))]}})


def _layout() -> Schema:
    parts = [
        record({"type": {"const": "text"}, "text": text()}, {"size": one_of(["small", "normal", "large"]), "bold": {"type": "boolean"}}),
        record({"type": {"const": "image"}, "source": text()}, {"caption": text(), "width": number(0, 4096)}),
        record({"type": {"const": "row"}, "children": many(refer("part"), 1)}, {"gap": number(0, 100)}),
        record({"type": {"const": "column"}, "children": many(refer("part"), 1)}, {"gap": number(0, 100)}),
        record({"type": {"const": "button"}, "label": text(), "action": text()}),
    ]
    return _rooted("part", {"part": {"anyOf": parts}})
