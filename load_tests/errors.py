"""What can go wrong in a load test.

BenchFailed (grammar_service.errors.MaskcastError)
├── NeverSteady
├── Stuck
├── UnknownFigure
└── UnknownTask
"""

from __future__ import annotations

from grammar_service.errors import MaskcastError


class BenchFailed(MaskcastError):
    """It cannot be run to its end."""


class NeverSteady(BenchFailed):
    """A service's metrics go on changing though nobody asks it for anything."""


class Stuck(BenchFailed):
    """A measuring process says nothing for too long, or ended too early."""


class UnknownFigure(BenchFailed):
    """A figure of the headline has no such target in its result."""


class UnknownTask(BenchFailed):
    """There is no task of that name."""
