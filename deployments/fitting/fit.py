"""What settings leave open is filled in by what the model and the machine are, each with its reason.

Idempotent: what has been filled in counts as set. So it is done where settings are read, to tell the operator, and where the application is
built, for whoever deploys it without the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from deployments.config import Settings, parse_settings
from deployments.config_model import UNKNOWN_CONTEXT, ModelSettings
from deployments.fitting.families import GPT_OSS, GPT_OSS_PARSERS, reasoning_parser, tool_parser
from deployments.fitting.model_card import ModelCard, read_card
from deployments.secret_file import plain
from model_service.settings import by_name

READ = ("context_length", "tool_call_parser", "reasoning_parser")
"""What a model's own files tell."""


@dataclass(frozen=True)
class Fit:
    """`reasons` has a sentence for each setting that was filled in."""

    settings: Settings
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class _Choice:
    setting: str
    value: Any
    reason: str


def fit(settings: Settings, gpus: float | None, read: Callable[[str], ModelCard] = read_card) -> Fit:
    """`gpus` that the machine or the cluster has, None: that is not known yet.

    Raises:
        SettingsError: the model's configuration cannot be read, or what follows from it does not go with the settings.
    """
    model = settings.model
    choices = list(_by_machine(model, gpus))
    given = model.model_fields_set | by_name(model.engine_args).keys()
    if not given.issuperset(READ):
        choices += [choice for choice in _by_model(model, read(model.path)) if choice.setting not in given]
    if not choices:
        return Fit(settings, ())
    tree = plain(settings)
    tree["model"] = {**tree.get("model", {}), **{choice.setting: choice.value for choice in choices}}
    return Fit(parse_settings(tree), tuple(f"{choice.setting} {_shown(choice.value)}: {choice.reason}" for choice in choices))


def _by_machine(model: ModelSettings, gpus: float | None) -> Iterator[_Choice]:
    if model.gpus_per_worker is not None or gpus is None:
        return
    if gpus:
        yield _Choice("gpus_per_worker", 1, f"there {'is a GPU' if gpus == 1 else f'are {gpus:g} GPUs'} here")
    else:
        yield _Choice("gpus_per_worker", 0, "there is no GPU here")


def _by_model(model: ModelSettings, card: ModelCard) -> Iterator[_Choice]:
    if card.context_length is None:
        yield _Choice("context_length", UNKNOWN_CONTEXT, "the model's configuration does not say")
    else:
        yield _Choice("context_length", card.context_length, "the model's own")
    if GPT_OSS in card.architectures:
        for setting, parser in zip(("tool_call_parser", "reasoning_parser"), GPT_OSS_PARSERS, strict=True):
            yield _Choice(setting, parser, "vLLM has no other one for gpt-oss")
        return
    if not card.template:
        yield _Choice("tool_call_parser", None, "the model has no chat template of its own; `--chat-template FILE` gives it one")
        yield _Choice("reasoning_parser", None, "likewise")
        return
    tools, reasoning = tool_parser(card.template), reasoning_parser(card.template)
    unknown = "its chat template has no format that is known here"
    yield _Choice("tool_call_parser", tools, "the format in its chat template" if tools else unknown)
    if model.lookahead:
        yield _Choice("reasoning_parser", None, "look-ahead goes with none")
    else:
        yield _Choice("reasoning_parser", reasoning, "the format in its chat template" if reasoning else unknown)


def _shown(value: object) -> str:
    return "none" if value is None else str(value)
