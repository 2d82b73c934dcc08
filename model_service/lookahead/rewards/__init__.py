"""What a look-ahead maximises: scores of the text so far, by data that a request carries, or by what settings have a name for."""

from model_service.lookahead.rewards.building import Sources, built
from model_service.lookahead.rewards.gathered import Gathered
from model_service.lookahead.rewards.reward import Aside, Reward, Scoring
from model_service.lookahead.rewards.specs import RewardSpec, parsed

__all__ = ["Aside", "Gathered", "Reward", "RewardSpec", "Scoring", "Sources", "built", "parsed"]
