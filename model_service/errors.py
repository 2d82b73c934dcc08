"""The model service's own errors; the tree's root stands in `grammar_service.errors`."""

from __future__ import annotations

from grammar_service.errors import MaskcastError


class EngineSettingsError(MaskcastError):
    """vLLM refuses the engine arguments; the message is vLLM's."""


class EngineDead(MaskcastError):
    """The engine process is gone; the replica is about to be replaced."""


class ChannelError(MaskcastError):
    """The engine core asked its replica for an artifact and did not get it."""


class MaskError(MaskcastError):
    """Masks did not come as a frame; whoever needs them fills them from the grammar."""


class InvalidFrame(MaskError):
    """Bytes that are not an intact mask frame of a version that is read here."""


class FrameTooLarge(MaskError):
    """A frame that no slot of the ring holds: it has to be sent along."""


class FrameLate(MaskError):
    """A frame that was not published by the deadline."""


class FrameGone(MaskError):
    """A frame that the ring does not hold any more, or never will: a later one has been published."""


class RingUnavailable(MaskError):
    """There is no memory for a ring, no ring at the address, or its writer has closed it."""


class InvalidMessage(MaskError):
    """Bytes that are no message between an engine and the broadcaster, or one that does not follow from those before."""
