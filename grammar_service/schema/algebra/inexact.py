"""The end of a rewrite."""

from __future__ import annotations

from grammar_service.errors import UnsupportedGrammar


class Inexact(UnsupportedGrammar):
    """What is asked for cannot be written exactly, or not in reasonable size."""
