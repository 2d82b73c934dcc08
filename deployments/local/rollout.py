"""Brings the application up on the Ray cluster that this process is connected to (Ray Serve 2.60), and tells why it does not come up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException

from deployments.app import build
from deployments.config import Settings
from deployments.errors import StartError
from deployments.local.progress import Progress
from deployments.local.replica_logs import last_lines
from deployments.names import APPLICATION, MODEL

STATUS_TIMEOUT_S = 10.0
Builder = Callable[[Settings], serve.Application]


def roll_out(settings: Settings, progress: Progress, logs: Path | None, builder: Builder = build) -> None:
    """Returns when every replica is ready. `logs` is Ray's log folder where it is on this machine.

    Raises:
        StartError: a deployment failed; the last lines of its log have been shown.
    """
    logging.getLogger("ray.serve").setLevel(logging.ERROR)  # it reports on stderr what the progress line shows
    application = builder(settings)
    with progress.step("starting the application", deployments_in_words):
        serve.start(proxy_location="Disabled")  # the ingresses listen themselves
        try:
            serve.run(application, name=APPLICATION, route_prefix=None)
        except RuntimeError as error:
            raise StartError(_explain(error, progress, logs)) from error


def engine_in_words(settings: Settings) -> str:
    """What the engines have made of their settings; empty where none of them says so in time."""
    model = serve.get_deployment_handle(MODEL, APPLICATION)
    try:
        facts = model.status.remote().result(timeout_s=STATUS_TIMEOUT_S).engine
    except (RayError, RayServeException, TimeoutError):
        return ""
    if facts is None:
        return ""
    parsers = f"tool calls: {settings.model.tool_call_parser or 'none'}, reasoning: {settings.model.reasoning_parser or 'none'}"
    return f"{facts.context_length} tokens of context, {facts.dtype}, jump-forward: {facts.jumps or 'none'}, {parsers}"


def deployments_in_words() -> str:
    """Such as `ModelReplica starting, Ingress running`; empty while Serve does not answer."""
    try:
        application = serve.status().applications.get(APPLICATION)
    except (RayError, RayServeException):
        return ""
    deployments = application.deployments if application else {}
    return ", ".join(f"{name} {_state(status.replica_states)}" for name, status in sorted(deployments.items()))


def _state(replicas: Mapping[Any, int]) -> str:
    running, wanted = int(replicas.get("RUNNING", 0)), sum(map(int, replicas.values()))
    return "running" if wanted and running == wanted else f"starting ({running} of {wanted} ready)"


def _explain(error: RuntimeError, progress: Progress, logs: Path | None) -> str:
    failed = [(name, status.message) for name, status in _unhealthy()]
    for name, _ in failed:
        _show_log(name, progress, logs)
    name, message = failed[0] if failed else ("the application", str(error))
    return f"{name} did not start: {_last_words(message)}"


def _unhealthy() -> list[tuple[str, serve.schema.DeploymentStatusOverview]]:
    try:
        application = serve.status().applications.get(APPLICATION)
    except (RayError, RayServeException):
        return []
    deployments = application.deployments if application else {}
    return [(name, status) for name, status in deployments.items() if status.status in {"UNHEALTHY", "DEPLOY_FAILED"}]


def _show_log(name: str, progress: Progress, logs: Path | None) -> None:
    lines = last_lines(logs, name) if logs else []
    if lines:
        progress.say("\n".join([f"the last lines of the log of {name}:", *lines]))


def _last_words(message: str) -> str:
    """The line of a traceback that names the error."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error" in line or "Exception" in line), lines[-1] if lines else "no reason given")
