"""The field `field_confidence`: how likely the model's own choices are in each leaf of an answer."""

from deployments.api.confidence.answer import FIELD, FieldConfidence, add_field_confidence, take_field_confidence

__all__ = ["FIELD", "FieldConfidence", "add_field_confidence", "take_field_confidence"]
