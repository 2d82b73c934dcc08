"""Decoding with look-ahead, as pure machines: instructions out, answers in. No engine, no clock, no text.

CDLH, CDLH-appx and CDSL of Nakshatri et al. 2025, "Constrained Decoding with Speculative Lookaheads".
"""

from model_service.lookahead.account import Account
from model_service.lookahead.machine import Machine, machine_for
from model_service.lookahead.parameters import Method, Parameters, Rejection, Stop

__all__ = ["Account", "Machine", "Method", "Parameters", "Rejection", "Stop", "machine_for"]
