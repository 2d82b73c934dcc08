"""What no grammar can say: left out of a schema where that allows more, and judged in the finished answer."""

from grammar_service.relaxation.relaxed import LEFT_OUT, Relax, Relaxed, relaxed

__all__ = ["LEFT_OUT", "Relax", "Relaxed", "relaxed"]
