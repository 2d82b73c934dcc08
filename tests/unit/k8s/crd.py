"""Judging an object by a CustomResourceDefinition as an API server does: defaults first, and no field that is not declared."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.published.manifests import ROOT

NAMED = "MASKCAST_CRDS"
FOLDER = ROOT.parent / "shared" / "data" / "kuberay"
"""KubeRay's definitions, `ray-operator/config/crd/bases` of its repository, where the environment names no other folder."""


@cache
def definition(plural: str, version: str = "v1") -> dict[str, Any]:
    """The schema of a kind of KubeRay. Where its definitions are not to be had, the test is skipped, and fails where the environment names
    a folder that lacks them."""
    folder = Path(os.environ.get(NAMED, FOLDER))
    file = folder / f"ray.io_{plural}.yaml"
    if not file.exists():
        missing = f"KubeRay's definitions are not in {folder}: name their folder in {NAMED}"
        if NAMED in os.environ:
            pytest.fail(missing)
        pytest.skip(missing)
    versions = yaml.load(file.read_text(), yaml.CSafeLoader)["spec"]["versions"]
    (schema,) = [each["schema"]["openAPIV3Schema"] for each in versions if each["name"] == version]
    found: dict[str, Any] = closed(schema)
    return found


def closed(schema: Any) -> Any:
    """The schema with objects that have what they declare and nothing else, as the server's strict validation asks."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: closed(each) for name, each in schema.items()}
    is_object = isinstance(schema.get("properties"), Mapping) and schema.get("type") == "object"
    if is_object and not schema.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in schema:
        found["additionalProperties"] = False
    return found


def with_defaults(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value with what the schema gives to the fields that it lacks, at all levels, also inside of what is given."""
    if isinstance(value, list):
        return [with_defaults(each, schema.get("items", {})) for each in value]
    if not isinstance(value, dict):
        return value
    fields, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    missing = {name: field["default"] for name, field in fields.items() if "default" in field and name not in value}
    return {name: with_defaults(each, fields.get(name, others or {})) for name, each in {**missing, **value}.items()}


def faults(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """What is wrong, with its place."""
    own = {**schema, "properties": {**schema["properties"], "metadata": {"type": "object"}}}
    found = jsonschema.Draft202012Validator(own).iter_errors(with_defaults(value, own))
    return [f"{error.json_path}: {error.message[:200]}" for error in found]
