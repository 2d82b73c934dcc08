from __future__ import annotations

from hypothesis import HealthCheck, settings

# On a busy machine everything is slow, and no fault of what is drawn.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")
