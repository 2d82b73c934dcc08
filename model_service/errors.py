"""The model service's own errors.

MaskcastError (grammar_service.errors)
├── EngineSettingsError   vLLM refuses the engine arguments
├── EngineDead            the engine process is gone
├── ChannelError          the engine core did not get an artifact from its replica
├── GrammarMemoryFull          those that an engine has loaded leave no memory for another one
├── MemoryUnavailable     no memory to share, or none at the address
├── MaskError             masks did not come as a frame: whoever needs them fills them from the grammar
│   ├── InvalidFrame      bytes that are no intact mask frame
│   ├── FrameTooLarge     no slot of the ring holds it
│   ├── FrameLate         not published by the deadline
│   ├── FrameGone         not in the ring any more
│   └── InvalidMessage    no message between an engine and the broadcaster
└── LookaheadError        a text cannot be decoded with look-ahead, or not to its end
    ├── InvalidLookahead  a parameter is out of its bounds, or a reward is none
    ├── InvalidScore      a reward is not a number
    ├── RewardFailed      a reward could not be computed
    ├── RewardLate        a reward was not there by its deadline
    ├── LookaheadFailed   an engine could not compute what was asked of it
    └── OutOfTurn         an answer that is none to the question
"""

from __future__ import annotations

from grammar_service.errors import MaskcastError


class EngineSettingsError(MaskcastError):
    """vLLM refuses the engine arguments; the message is vLLM's."""


class EngineDead(MaskcastError):
    """The engine process is gone; another one is about to take its place."""


class ChannelError(MaskcastError):
    """The engine core asked its replica for an artifact and did not get it."""


class GrammarMemoryFull(MaskcastError):
    """The grammars that an engine has loaded, and that requests use, leave no memory for another one."""


class MaskError(MaskcastError):
    """Masks did not come as a frame; whoever needs them fills them from the grammar."""


class InvalidFrame(MaskError):
    """Bytes that are not an intact mask frame of a version that is read here."""


class FrameTooLarge(MaskError):
    """A frame that no slot of the ring holds."""


class FrameLate(MaskError):
    """A frame of which the broadcaster has said nothing by the deadline."""


class FrameGone(MaskError):
    """A frame that is not in the ring: another stands there, or is just being written, or it is another ring."""


class InvalidMessage(MaskError):
    """Bytes that are no message between an engine and the broadcaster, or one that does not follow from those before."""


class MemoryUnavailable(MaskcastError):
    """There is no shared memory of that size, none at the address, or it does not hold what it should."""


class LookaheadError(MaskcastError):
    """A text cannot be decoded with look-ahead, or not to its end."""


class InvalidLookahead(LookaheadError):
    """What was asked for is at fault. `field`: where it stands below `lookahead`, with dots."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message

    def __reduce__(self) -> tuple[type[InvalidLookahead], tuple[str, str]]:
        return type(self), (self.field, self.message)

    def below(self, place: str) -> InvalidLookahead:
        """The same, of something that stands in a larger one."""
        return type(self)(f"{place}.{self.field}", self.message)


class InvalidScore(LookaheadError):
    """A reward is not a finite number."""


class RewardFailed(LookaheadError):
    """A reward that the settings name could not be computed."""


class RewardLate(LookaheadError):
    """A reward was not there by its deadline."""


class LookaheadFailed(LookaheadError):
    """An engine could not compute what a look-ahead has asked of it."""


class OutOfTurn(LookaheadError):
    """An answer that is none to the question that a machine has asked: whoever drives it is at fault."""
