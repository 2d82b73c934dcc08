"""Named constraints as they are written: in `POST /v1/grammars`, and under `grammars:` in the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployments.builders import limits
from deployments.config import Settings
from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import NamedGrammar, Requested, take_constraint
from deployments.errors import ApiError, SettingsError, bad_request
from grammar_service.backends import select_backend
from grammar_service.errors import GrammarError
from grammar_service.limits import check_limits
from grammar_service.registry.entry import MAX_ID_LENGTH, is_valid_id
from grammar_service.resolve import refuse_unknown
from grammar_service.spec import GrammarSpec

FIELDS = ("id", "structured_outputs", "response_format", "replace")
ID_RULE = f"1 to {MAX_ID_LENGTH} letters, digits, dots, underscores or hyphens"


@dataclass(frozen=True, slots=True)
class Registration:
    """A name, the constraint that it shall stand for, and whether it may stand for another one now."""

    id: str
    constraint: Requested
    replace: bool


def read_registration(body: Mapping[str, Any], defaults: ConstraintDefaults) -> Registration:
    """Raises ApiError, which says which field to mend."""
    if (unknown := next((name for name in body if name not in FIELDS), None)) is not None:
        raise bad_request(f"'{unknown}' is not supported here; the fields are: {', '.join(FIELDS)}.", unknown, "unsupported_parameter")
    name, replace = body.get("id"), body.get("replace", False)
    if not isinstance(name, str) or not is_valid_id(name):
        raise bad_request(f"'id' must be {ID_RULE}.", "id")
    if not isinstance(replace, bool):
        raise bad_request("'replace' must be true or false.", "replace")
    return Registration(name, _constraint({key: body[key] for key in FIELDS[1:3] if key in body}, defaults), replace)


def settings_grammars(settings: Settings) -> dict[str, GrammarSpec]:
    """The constraints of `grammars:`, by name.

    Raises:
        SettingsError: one is malformed, over a limit, or enforced by no backend.
    """
    return {name: _settings_grammar(name, value, settings) for name, value in settings.grammars.items()}


def _constraint(fields: dict[str, Any], defaults: ConstraintDefaults) -> Requested:
    match take_constraint(fields, defaults, ""):
        case Requested() as requested:
            return requested
        case NamedGrammar() as named:
            raise bad_request(f"'{named.field}' cannot be registered under another name.", named.field)
    raise bad_request("A grammar needs a constraint: 'structured_outputs' or 'response_format'.", "structured_outputs")


def _settings_grammar(name: str, value: Mapping[str, Any], settings: Settings) -> GrammarSpec:
    if not is_valid_id(name):
        raise SettingsError(f"settings: grammars.{name}: a name must be {ID_RULE}")
    field = "structured_outputs"
    try:
        requested = _constraint({"structured_outputs": dict(value)}, ConstraintDefaults.of(settings.grammar))
        field = requested.field
        _check(requested.spec, settings)
    except ApiError as error:
        raise _wrong(name, error.param or field, error.message) from None
    except GrammarError as error:
        raise _wrong(name, field if error.pointer is None else f"{field}#{error.pointer}", error.message) from None
    return requested.spec


def _check(spec: GrammarSpec, settings: Settings) -> None:
    check_limits(spec, limits(settings))
    refuse_unknown(spec)
    select_backend(spec)


def _wrong(name: str, field: str, message: str) -> SettingsError:
    place = field.replace("structured_outputs", f"grammars.{name}", 1)
    return SettingsError(f"settings: {place}: {message.replace('structured_outputs', f'grammars.{name}')}")
