"""Schemas as generators of OpenAPI documents and custom resources of Kubernetes write them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi import FastAPI
from pydantic import BaseModel

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.integration.grammar_service.corpora.serving import SERVED, verdict

CRDS = "MASKCAST_CRDS"
"""Names a folder of custom resource definitions in YAML."""

QUANTITY = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
FORMS: dict[str, tuple[Any, Any]] = {
    "nullable": ({"type": "object", "properties": {"a": {"type": "string", "nullable": True}}, "required": ["a"]}, {"a": "x"}),
    "boolean exclusive bounds": ({"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 9}, 1),
    "numeric formats": ({"type": "object", "properties": {"a": {"type": "integer", "format": "int64"}}}, {"a": 1}),
    "discriminator": (
        {
            "oneOf": [{"$ref": "#/definitions/Cat"}, {"$ref": "#/definitions/Dog"}],
            "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/definitions/Cat", "dog": "#/definitions/Dog"}},
            "definitions": {
                "Pet": {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}},
                "Cat": {
                    "allOf": [
                        {"$ref": "#/definitions/Pet"},
                        {"type": "object", "properties": {"kind": {"enum": ["cat"]}, "lives": {"type": "integer"}}},
                    ]
                },
                "Dog": {
                    "allOf": [
                        {"$ref": "#/definitions/Pet"},
                        {"type": "object", "properties": {"kind": {"enum": ["dog"]}, "name": {"type": "string"}}},
                    ]
                },
            },
        },
        {"kind": "dog", "name": "a"},
    ),
    "int or string": (
        {
            "type": "object",
            "properties": {"port": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}},
        },
        {"port": "http"},
    ),
    "list that is a map": (
        {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "value": {"default": "", "type": "string"}}},
            "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-list-type": "map",
        },
        [{"name": "a"}],
    ),
    "quantity": (
        {
            "type": "object",
            "additionalProperties": {
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "pattern": QUANTITY,
                "x-kubernetes-int-or-string": True,
            },
        },
        {"cpu": "500m"},
    ),
    "embedded resource": (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
        {"a": "x"},
    ),
}
MUST_BE_SERVED = ("discriminator", "int or string", "list that is a map", "quantity", "embedded resource")


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_served_or_refused_with_a_reason(name: str, tokenizer: GrammarTokenizer) -> None:
    schema, value = FORMS[name]
    found = verdict(schema, [value], tokenizer)
    assert found
    assert found == SERVED or name not in MUST_BE_SERVED


class Line(BaseModel):
    sku: str
    count: int = 1


class Order(BaseModel):
    lines: list[Line]
    note: str | None = None


def test_components_of_fastapi_are_served(tokenizer: GrammarTokenizer) -> None:
    app = FastAPI()

    @app.post("/orders")
    def order(body: Order) -> Order:
        return body

    components = app.openapi()["components"]["schemas"]
    text = json.dumps({**components["Order"], "definitions": components})
    schema = json.loads(text.replace("#/components/schemas/", "#/definitions/"))
    assert verdict(schema, [{"lines": [{"sku": "a", "count": 2}], "note": None}], tokenizer) == SERVED


def crds() -> Iterator[Any]:
    for file in sorted(Path(os.environ.get(CRDS, os.devnull)).glob("*.yaml")):
        for version in yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]["versions"]:
            yield pytest.param(version["schema"]["openAPIV3Schema"], id=f"{file.stem}-{version['name']}")


@pytest.mark.skipif(CRDS not in os.environ, reason=f"{CRDS} names no folder")
@pytest.mark.parametrize("schema", list(crds()))
def test_every_custom_resource_is_served_or_refused_with_a_reason(schema: Any, tokenizer: GrammarTokenizer) -> None:
    assert verdict(schema, [], tokenizer)
