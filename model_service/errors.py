"""The model service's own errors; the tree's root stands in `grammar_service.errors`."""

from __future__ import annotations

from grammar_service.errors import MaskcastError


class EngineSettingsError(MaskcastError):
    """vLLM refuses the engine arguments; the message is vLLM's."""


class EngineDead(MaskcastError):
    """The engine process is gone; the replica is about to be replaced."""


class ChannelError(MaskcastError):
    """The engine core asked its replica for an artifact and did not get it."""
