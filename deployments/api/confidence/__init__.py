"""How likely the model's own choices are in each leaf of an answer."""

from deployments.api.confidence.answer import FIELD, ask_for_tokens, confident

__all__ = ["FIELD", "ask_for_tokens", "confident"]
