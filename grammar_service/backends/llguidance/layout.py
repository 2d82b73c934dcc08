"""How the library is told to lay out JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammar_service.spec import COMPACT, FLEXIBLE

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions


def separators_of(whitespace: str) -> tuple[str, str]:
    """What stands between items, and behind a name."""
    return (",", ":") if whitespace in (COMPACT, FLEXIBLE) else (", ", ": ")


def options_of(whitespace: str) -> JsonCompileOptions:
    """For one of the layouts that it has."""
    comma, colon = separators_of(whitespace)
    return {
        "whitespace_flexible": whitespace == FLEXIBLE,
        "item_separator": comma,
        "key_separator": colon,
        "coerce_one_of": False,
        "lenient": False,
    }
