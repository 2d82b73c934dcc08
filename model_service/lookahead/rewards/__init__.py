"""What a look-ahead maximises: scores of the text so far, from data that a request carries."""

from model_service.lookahead.rewards.building import Sources, built
from model_service.lookahead.rewards.reward import Reward
from model_service.lookahead.rewards.specs import RewardSpec, parsed

__all__ = ["Reward", "RewardSpec", "Sources", "built", "parsed"]
