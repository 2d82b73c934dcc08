"""What a request says of its look-ahead: data of known fields, within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from model_service.errors import InvalidLookahead
from model_service.lookahead.parameters import Method, Parameters, Rejection
from model_service.lookahead.rewards import RewardSpec, parsed


@dataclass(frozen=True, slots=True)
class Lookahead:
    """`seed`: for rejection by sampling; `trace`: what is tried at each step is to be told."""

    method: Method
    parameters: Parameters
    reward: RewardSpec
    seed: int = 0
    trace: bool = False


class _Fields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By the names of `Parameters`, which has their bounds and defaults."""

    method: Method
    reward: dict[str, Any]
    d: int | msgspec.UnsetType = msgspec.UNSET
    k: int | msgspec.UnsetType = msgspec.UNSET
    a_t: float | msgspec.UnsetType = msgspec.UNSET
    r_t: float | msgspec.UnsetType = msgspec.UNSET
    b: int | msgspec.UnsetType = msgspec.UNSET
    rejection: Rejection | msgspec.UnsetType = msgspec.UNSET
    keep_drafts: bool | msgspec.UnsetType = msgspec.UNSET
    reuse: bool | msgspec.UnsetType = msgspec.UNSET
    trace: bool = False


RESOLVED = msgspec.json.Decoder(_Fields)
"""As `RewardSpec` is."""
_PARAMETERS = ("d", "k", "a_t", "r_t", "b", "rejection", "keep_drafts", "reuse")


def read(tree: Mapping[str, object], seed: int = 0) -> Lookahead:
    """Raises InvalidLookahead, whose field is empty where it is the whole that is at fault."""
    try:
        fields = msgspec.convert(tree, _Fields)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        raise InvalidLookahead(place.rstrip("`").lstrip("."), message) from None
    given = {name: value for name in _PARAMETERS if (value := getattr(fields, name)) is not msgspec.UNSET}
    return Lookahead(fields.method, Parameters(**given), parsed(fields.reward), seed, fields.trace)
