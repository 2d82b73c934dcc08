"""What a client sees of the registry's faults."""

from __future__ import annotations

from http import HTTPStatus

from deployments.errors import ApiError, bad_request, unavailable
from grammar_service.registry import Room, Stored

SHOWN = 80  # characters of an unknown name that a message repeats


def unknown_name(name: str, field: str) -> ApiError:
    """A request names a grammar that is not there."""
    return bad_request(f"There is no grammar {name[:SHOWN]!r}: POST /v1/grammars registers one.", field, "grammar_not_found")


def not_found(name: str) -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, f"There is no grammar {name[:SHOWN]!r}.", code="grammar_not_found", param="id")


def taken(name: str) -> ApiError:
    message = f'The name {name!r} stands for another grammar: send "replace": true, or choose another name.'
    return ApiError(HTTPStatus.CONFLICT, message, code="grammar_exists", param="id")


def fixed(name: str) -> ApiError:
    message = f"The grammar {name!r} stands in the server's settings (grammars.{name}): it can only be changed or deleted there."
    return ApiError(HTTPStatus.CONFLICT, message, code="grammar_in_settings", param="id")


def no_room(why: Stored, room: Room) -> ApiError:
    """`why` an entry was not stored."""
    reasons = {
        Stored.NO_NAMES_LEFT: f"{room.names} grammars are registered, which is the limit (grammar.max_registered)",
        Stored.TENANT_HAS_NO_ROOM: f"registered grammars may have {_mib(room.tenant_bytes)} in all (grammar.max_registered_mib)",
        Stored.ALL_HAVE_NO_ROOM: f"all tenants' grammars may have {_mib(room.all_bytes)} (grammar.max_registered_mib_of_all)",
    }
    return bad_request(f"There is no room for another grammar: {reasons[why]}; delete one first.", "id", "too_many_grammars")


def no_store() -> ApiError:
    message = "Registering needs a shared cache: set redis.url, or name the grammar in the settings (grammars)."
    return bad_request(message, None, "registry_not_configured")


def silent(done: str) -> ApiError:
    """`done` says what could not be: "registered"."""
    message = f"Named grammars cannot be {done} now, since Redis does not answer; try again in a moment."
    return unavailable(message, "registry_unavailable", 5)


def damaged(name: str) -> ApiError:
    return unavailable(f"What is stored of the grammar {name!r} is damaged: register it again.", "grammar_damaged")


def _mib(size: int) -> str:
    return f"{size / 2**20:g} MiB"
