"""What Ray, vLLM and torch read from the environment: set before they start, and put back afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from deployments.config import Settings
from deployments.config_model import COME_WITH_IT, names_folder

OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}

SELDOM = {
    "RAY_SERVE_CONTROL_LOOP_INTERVAL_S": "0.5",
    "RAY_SERVE_METRICS_EXPORT_INTERVAL_MS": "1000",
    "REPORTER_UPDATE_INTERVAL_MS": "60000",
}
"""Ray looks after its actors ten times a second, hands its metrics on as often, and looks at the node's processes every five seconds: that
takes 16 % of a processor from a service that nobody uses, with these 11 %."""


def defaults(settings: Settings, home: Path) -> dict[str, str]:
    """For all processes of the service; what the operator has set himself wins. `home` is the user's."""
    local = settings.model.path in COME_WITH_IT or names_folder(settings.model.path)
    return {
        "PYTHONUNBUFFERED": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "1",
        "RAY_worker_niceness": "0",  # they are the service: at 15, whatever else runs here goes first
        **SELDOM,
        # Otherwise one that fails its health checks may go on for `http.drain_s`: one that hangs, with its port and its connections.
        "RAY_SERVE_FORCE_STOP_UNHEALTHY_REPLICAS": "1",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray's future default; without it every start warns about the change
        "TOKENIZERS_PARALLELISM": "false",
        # Otherwise gRPC (1.85), which handles use, begins threads anew in each fork. Now and then they end it before it has become
        # the program that was asked for, such as Ray's GCS, and nobody is told.
        "GRPC_ENABLE_FORK_SUPPORT": "0",
        # Otherwise engines and their workers find each other by an address that all the network can reach.
        "VLLM_HOST_IP": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        # Otherwise below the temporary folder, which goes with each run.
        "TORCHINDUCTOR_CACHE_DIR": str(home / ".cache" / "maskcast" / "torchinductor"),
        **(OFFLINE if local else {}),
    }


@contextmanager
def environment(wanted: Mapping[str, str], forced: Mapping[str, str]) -> Iterator[None]:
    """os.environ with `wanted` where nothing is set and with `forced` in any case, for the length of the block."""
    earlier = dict(os.environ)
    os.environ.update({name: value for name, value in wanted.items() if name not in earlier})
    os.environ.update(forced)
    try:
        yield
    finally:
        for name in {*wanted, *forced}:
            if name in earlier:
                os.environ[name] = earlier[name]
            else:
                os.environ.pop(name, None)
