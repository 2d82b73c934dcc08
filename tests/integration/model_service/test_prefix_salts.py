"""A real engine reuses what a prompt begins with for one tenant, and computes it anew for another."""

from __future__ import annotations

from uuid import uuid4

from deployments.access.prefixes import TenantPrefixes
from tests.integration.model_service.running_engine import RunningEngine

PREFIXES = TenantPrefixes(b"secret", shared=False)


def cached_tokens(engine: RunningEngine, question: str, tenant: str) -> int:
    """Of the prompt, as the answer tells its client."""
    details = engine.ask(question, **PREFIXES.salted({"max_tokens": 1}, tenant)).usage["prompt_tokens_details"] or {}
    return int(details.get("cached_tokens") or 0)


def test_nobody_learns_what_another_tenant_has_asked(jumping: RunningEngine) -> None:
    question = f"{uuid4().hex} " + "Nobody else has asked this before. " * 40
    assert cached_tokens(jumping, question, "me") == 0
    assert cached_tokens(jumping, question, "me") > 0
    assert cached_tokens(jumping, question, "you") == 0
    assert cached_tokens(jumping, question, "") == 0
