"""API keys in a file: a YAML list with an entry for each tenant, which holds digests and no keys.

SHA-256 without salt and stretching is enough for keys that are drawn at random: nobody finds one of 256 bits by trying, whatever a trial
costs. It is not for words that people think of, so that keys are made by `maskcast key`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from deployments.access.caller import Scope
from deployments.access.request_bounds import RequestBounds
from deployments.config import KeyLimits
from deployments.errors import SettingsError

KEY_PREFIX = "mk-"
"""By which a key that has got somewhere it does not belong is recognised."""
KEY_BYTES = 32
NAME = r"^[A-Za-z0-9._-]{1,64}$"
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


class EntryLimits(KeyLimits, RequestBounds):
    """What the tenant may use, and what one request of its may ask for."""

    @property
    def of_tenant(self) -> KeyLimits:
        return KeyLimits(**{name: getattr(self, name) for name in KeyLimits.model_fields})

    @property
    def of_request(self) -> RequestBounds:
        return RequestBounds(**{name: getattr(self, name) for name in RequestBounds.model_fields})


class KeyEntry(BaseModel):
    """One tenant: its name is shown in metrics and logs. Two digests let an old key be valid beside its successor."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=False)

    name: str = Field(pattern=NAME)
    sha256: Annotated[tuple[Digest, ...], BeforeValidator(_listed)] = Field(min_length=1)
    scopes: tuple[Scope, ...] = (Scope.GENERATE,)
    weight: float = Field(1.0, gt=0, le=1000)
    limits: EntryLimits = EntryLimits()


_ENTRIES = TypeAdapter(tuple[KeyEntry, ...])


def digest_of(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def new_key() -> str:
    return KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)


def entry_text(key: str, name: str, scopes: Sequence[str], weight: float) -> str:
    """The entry of a new key as the file has it, to be written behind others. Raises SettingsError."""
    tree = {"name": name, "sha256": digest_of(key), "scopes": [*map(str, scopes)], "weight": weight}
    _entries([tree], "the new key")
    return yaml.safe_dump([tree], sort_keys=False)


def read_keys(path: Path) -> tuple[KeyEntry, ...]:
    """The entries of a key file; `[]` is a file without any.

    Raises:
        SettingsError: it cannot be read, or an entry is wrong. The message names the place, and repeats nothing of the file: a key may have
            been written where its digest belongs.
    """
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"http.api_keys_file: cannot read {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise SettingsError(f"http.api_keys_file: {path} is not YAML{f', line {mark.line + 1}' if mark else ''}") from None
    if tree is None:  # it was truncated, or is being written
        raise SettingsError(f"http.api_keys_file: {path} is empty; a file without keys is []")
    return _entries(tree, str(path))


def _entries(tree: object, where: str) -> tuple[KeyEntry, ...]:
    try:
        entries = _ENTRIES.validate_python(tree)
    except ValidationError as error:
        faults = "; ".join(f"{_place(fault['loc'])}: {fault['msg']}" for fault in error.errors(include_input=False))
        raise SettingsError(f"http.api_keys_file: {where}: {faults}") from None
    for found in ([entry.name for entry in entries], [digest for entry in entries for digest in entry.sha256]):
        if len(set(found)) < len(found):
            raise SettingsError(f"http.api_keys_file: {where}: two entries have the same name or digest")
    return entries


def _place(path: tuple[int | str, ...]) -> str:
    known = {"name", "sha256", "scopes", "weight", "limits", *EntryLimits.model_fields}
    return ".".join(str(step) if isinstance(step, int) or step in known else "(unknown field)" for step in path) or "all"
