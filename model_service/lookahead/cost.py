"""What look-aheads cost, in forwards of the target (section 4.3)."""

from __future__ import annotations


def runtime(cost_ratio: float, draft_calls: float, target_calls: float) -> float:
    """P of the paper. `cost_ratio`: its c, the target's tokens a second by the draft's, decoding greedily; calls are for one token. 1 is
    what a token costs greedily. That of the reward is left out."""
    return cost_ratio * draft_calls + target_calls
