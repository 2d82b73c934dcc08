"""Kinds of values that settings have, and what they must be like."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, SecretStr

from model_service.messages import OUR_ARGUMENTS
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


TOKENIZER_ARGUMENTS = frozenset(
    "add_generation_prompt chat_template continue_final_message conversation documents max_length padding processor_kwargs "
    "return_assistant_tokens_mask return_dict return_tensors tokenize tokenizer_kwargs tools truncation".split()
)
"""Parameters of a tokenizer's `apply_chat_template` (transformers 5): `padding` and `max_length` allocate gigabytes."""


TRANSFER_ARGUMENTS = frozenset({"kv_transfer_params", "ec_transfer_params"})


def _for_templates(name: str) -> str:
    if name in TOKENIZER_ARGUMENTS:
        raise ValueError(f"{name} is an argument of the tokenizer and not of its template")
    return name


def _for_extensions(name: str) -> str:
    if name in TRANSFER_ARGUMENTS or name.startswith(OUR_ARGUMENTS):
        raise ValueError(f"{name} is not for clients: it names tensors, grammars or calls of others")
    return name


ExtraArgument = Annotated[str, AfterValidator(_for_extensions)]
TemplateArgument = Annotated[str, AfterValidator(_for_templates)]
NodeLabels = Annotated[dict[str, str], AfterValidator(_labels)]
"""Of Ray nodes (`ray start --labels`). Where several are named, a node needs them all. `!value`: any other value, or none."""
Jumps = Annotated[JumpForward, BeforeValidator(lambda value: JUMPS.get(value, value))]
"""As YAML and the environment write them; `true` is what there was before there were several."""
ApiKey = Annotated[SecretStr, long_enough(SHORTEST_API_KEY)]
"""Of settings that are printed, only asterisks are seen."""
