"""What one request of an API key may ask for, where that is less than what anybody's may."""

from __future__ import annotations

from pydantic import Field

from deployments.config import LimitSettings
from deployments.config_models import Section


class RequestBounds(Section):
    """As in `LimitSettings`; None: as anybody."""

    max_sequences: int | None = Field(None, ge=1)
    max_tokens: int | None = Field(None, ge=1)
    max_logprobs: int | None = Field(None, ge=0)
    max_logit_bias: int | None = Field(None, ge=0)
    max_stop: int | None = Field(None, ge=0)
    max_messages: int | None = Field(None, ge=1)
    max_tools: int | None = Field(None, ge=0)
    request_timeout_s: float | None = Field(None, gt=0)

    def within(self, limits: LimitSettings) -> LimitSettings:
        """The narrower one of each."""
        own = self.model_dump(exclude_none=True)
        if not own:  # as most keys have none
            return limits
        anybodys = {name: getattr(limits, name) for name in own}
        return limits.model_copy(update={name: most if anybodys[name] is None else min(most, anybodys[name]) for name, most in own.items()})


NO_BOUNDS = RequestBounds()
