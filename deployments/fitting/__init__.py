"""What settings leave open follows from the model and the machine."""

from deployments.fitting.fit import Fit, fit
from deployments.fitting.model_card import ModelCard, read_card

__all__ = ["Fit", "ModelCard", "fit", "read_card"]
