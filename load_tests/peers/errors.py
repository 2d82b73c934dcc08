"""What can go wrong in a comparison."""

from __future__ import annotations


class PeersError(Exception):
    """The root."""


class NeverQuiet(PeersError):
    """An engine works on though nobody asks it for anything."""


class UnknownTask(PeersError):
    """There is no task of that name."""
