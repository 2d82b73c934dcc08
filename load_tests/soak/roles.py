"""What the processes of a service are, by their command lines."""

from __future__ import annotations

import re

from deployments.names import APPLICATION

_ROLES = (
    (re.compile(rf"^ray::.*ServeReplica:{APPLICATION}:(\w+)"), r"\1"),
    (re.compile(r"^ray::.*ServeController"), "Serve's controller"),
    (re.compile(r"^ray::(DashboardAgent|RuntimeEnvAgent)"), "Ray's agents"),
    (re.compile(r"^\S*raylet/raylet\b"), "raylet"),  # whose command line holds that of its workers
    (re.compile(r"^ray::IDLE|default_worker\.py"), "idle worker"),
    (re.compile(r"^ray::(?:.*:)?(\w+)"), r"\1"),
    (re.compile(r"^VLLM::EngineCore"), "engine core"),
    (re.compile(r"^VLLM::Worker"), "engine worker"),
    (re.compile(r"multiprocessing\.forkserver"), "what cores are forked from"),
    (re.compile(r"grammar_service\.sandbox\.zygote"), "compile child"),
    (re.compile(r"redis-server"), "Redis"),
    (re.compile(r"gcs/gcs_server"), "Ray's GCS"),
    (re.compile(r"ray/(_private/log_monitor|dashboard/|_private/runtime_env/agent|autoscaler/_private/monitor)"), "Ray's agents"),
)
OTHER = "other"


def role(command: str, above: str = "") -> str:
    """Of a process whose command line this is, below one with that role: processes that a library starts are its parent's."""
    for pattern, name in _ROLES:
        if found := pattern.search(command):
            named = found.expand(name)
            return "compile zygote" if named == "compile child" and above != "compile zygote" else named
    return above or OTHER
