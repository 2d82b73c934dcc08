from __future__ import annotations

import atexit
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# On a busy machine everything is slow, and no fault of what is drawn.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")

# As `deployments.local.environment` says, which is too late here: gRPC reads it when it is imported, and test modules import it.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

_STATUS = pytest.StashKey[int]()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[_STATUS] = exitstatus


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the process before its threads lose what they use, once Ray has been in it (2.60): after a second `ray.init` its exporter of
    metrics outlives `ray.shutdown`, as the event loop of Serve's handles does after the first. Seen once: a crash after the last test."""
    if "ray" not in sys.modules or _STATUS not in config.stash:
        return
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(config.stash[_STATUS])
