"""Kinds of values that settings have, and what they must be like."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, SecretStr

from model_service.settings import JumpForward

SHORTEST_API_KEY = 16
SHORTEST_SECRET = 32
"""Characters. Who guesses is only slowed down by the network, or by nothing where he has what a secret has signed."""
Format = Literal["enforce", "annotate"]
Whitespace = Literal["flexible", "standard", "compact", "indent:2", "indent:4"]
JUMPS: dict[object, object] = {True: "auto", "true": "auto", "false": False}
LABEL_NAME = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"!?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def long_enough(least: int) -> AfterValidator:
    """Of secrets."""

    def check(value: SecretStr) -> SecretStr:
        if len(value.get_secret_value().strip()) < least:
            raise ValueError(f"a secret needs at least {least} characters, blanks at its ends not counted")
        return value

    return AfterValidator(check)


def _labels(labels: dict[str, str]) -> dict[str, str]:
    """As Ray and Kubernetes write them, a `!` before a value as Ray has it; other words Ray would take for operators of its own."""
    for name, value in labels.items():
        if not LABEL_NAME.fullmatch(name) or not LABEL_VALUE.fullmatch(value):
            raise ValueError(f"{name}: {value} is no label of a node, as Kubernetes writes them")
    return labels


NodeLabels = Annotated[dict[str, str], AfterValidator(_labels)]
"""Of Ray nodes (`ray start --labels`). Where several are named, a node needs them all. `!value`: any other value, or none."""
Jumps = Annotated[JumpForward, BeforeValidator(lambda value: JUMPS.get(value, value))]
"""As YAML and the environment write them; `true` is what there was before there were several."""
ApiKey = Annotated[SecretStr, long_enough(SHORTEST_API_KEY)]
"""Of settings that are printed, only asterisks are seen."""
