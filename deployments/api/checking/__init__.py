"""Answers to schemas of which something was left out of the grammar: nothing wrong is handed over as right."""

from deployments.api.checking.checker import AnswerChecker, Check

__all__ = ["AnswerChecker", "Check"]
