"""Settings from the environment: YAML, but for secrets, which are taken as they stand. A password is no YAML: `0755`, `null` and
`pass #word` would become others, and `*a` or `[b` an error that repeats them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, SecretStr

from deployments.errors import SettingsError

PREFIX = "MASKCAST_"
FILE = "_file"
"""What the name of a variable ends with that names a file with a secret."""


def from_environment(settings: type[BaseModel], environment: Mapping[str, str]) -> Iterator[tuple[list[str], Any]]:
    """The names and the value of each setting that the environment has.

    Raises:
        SettingsError: a value is not YAML, or a file of a secret cannot be read; the message names the variable and repeats no value.
    """
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        names = variable.removeprefix(PREFIX).lower().split("__")
        declared = declaration(settings, names)
        if _holds_secrets(declared):
            yield names, _secret(declared, text)
        elif declared is None and _holds_secrets(kept := declaration(settings, held := _without_file(names))):
            if PREFIX + "__".join(held).upper() in environment:
                raise SettingsError(f"settings: {variable} and the same without {FILE.upper()} are both set")
            yield held, _secret(kept, _read(variable, Path(text)))
        else:
            yield names, _yaml(variable, text)


def check_texts(settings: type[BaseModel], tree: Any, place: tuple[str, ...] = ()) -> None:
    """Raises SettingsError where a file has a secret that YAML has made a number, a date or nothing of."""
    for name, value in tree.items() if isinstance(tree, Mapping) else ():
        here = (*place, str(name))
        declared = declaration(settings, here)
        if isinstance(declared, type) and issubclass(declared, BaseModel):
            check_texts(settings, value, here)
        elif _holds_secrets(declared):
            for each in value if isinstance(value, list | tuple) else (value,):
                if not isinstance(each, str | SecretStr):
                    raise SettingsError(f"settings: {'.'.join(here)} is no text to YAML: put it in quotes")


def declaration(settings: type[BaseModel], names: list[str] | tuple[str, ...]) -> Any:
    """What a setting is declared as; None: there is none of that name."""
    section: Any = settings
    for name in names:
        if not (isinstance(section, type) and issubclass(section, BaseModel)) or name not in section.model_fields:
            return None
        section = section.model_fields[name].annotation
    return section


def _holds_secrets(declared: Any) -> bool:
    return declared is SecretStr or any(map(_holds_secrets, get_args(declared)))


def _secret(declared: Any, text: str) -> str | list[str]:
    """Of several, one as it stands, or an array in JSON."""
    if tuple not in (declared, getattr(declared, "__origin__", None)):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else [text]


def _without_file(names: list[str]) -> list[str]:
    return [*names[:-1], names[-1].removesuffix(FILE)]


def _read(variable: str, file: Path) -> str:
    """Without the line feed that editors put at the end."""
    try:
        return file.read_bytes().decode("utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        fault = getattr(error, "strerror", None) or "it is not UTF-8"
        raise SettingsError(f"settings: {variable}: cannot read {file}: {fault}") from None


def _yaml(variable: str, text: str) -> Any:
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise SettingsError(f"settings: {variable} is not YAML") from None
    if value is None and text.strip() not in ("null", "~"):
        # An unset variable in a template: null would turn off what the file sets, such as API keys.
        raise SettingsError(f"settings: {variable} is empty: unset it, or write null")
    return value
