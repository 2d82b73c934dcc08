"""The kinds of Prometheus' operator, as far as our objects say anything: fields and bounds of its API (monitoring.coreos.com/v1, 0.87).

A field that is not listed is one that we do not use. Whoever uses it lists it here, from the operator's API reference.
"""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_DURATION = {"type": "string", "pattern": r"^(0|(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?)$", "minLength": 1}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": [*required], "properties": properties, "additionalProperties": False}


_RELABELING = _object(
    action={"enum": ["replace", "keep", "drop", "labelmap", "labeldrop", "labelkeep"]},
    sourceLabels={"type": "array", "items": {"type": "string", "pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"}},
    regex=_TEXT,
    targetLabel=_TEXT,
    replacement=_TEXT,
)
_ENDPOINT = _object(port=_TEXT, interval=_DURATION, metricRelabelings={"type": "array", "items": _RELABELING})
_RULE = {
    **_object(("alert", "expr"), alert=_TEXT, expr=_TEXT, labels=_TEXTS, annotations=_TEXTS, **{"for": _DURATION}),
    "description": "of alerts; one that records has no `for`",
}
_GROUP = _object(("name",), name={"type": "string", "minLength": 1}, rules={"type": "array", "items": _RULE})
_SPECS = {
    "ServiceMonitor": _object(
        ("selector", "endpoints"), selector=_object(matchLabels=_TEXTS), endpoints={"type": "array", "items": _ENDPOINT, "minItems": 1}
    ),
    "PrometheusRule": _object(groups={"type": "array", "items": _GROUP}),
}


def kind_of(name: str) -> dict[str, Any]:
    """The schema of the whole object."""
    api = {"const": "monitoring.coreos.com/v1"}
    return _object(
        ("apiVersion", "kind", "metadata", "spec"), apiVersion=api, kind={"const": name}, metadata={"type": "object"}, spec=_SPECS[name]
    )


MONITORING = tuple(_SPECS)
