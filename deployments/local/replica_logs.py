"""What the replicas of a deployment, and Ray itself, wrote before they ended (the log folder of Ray 2.60)."""

from __future__ import annotations

from pathlib import Path

from deployments.names import APPLICATION

TAIL_LINES = 30
ERRORS = (" ERROR ", '"level": "ERROR"')
"""As loggers mark them, in text and in JSON."""


def last_lines(logs: Path, deployment: str) -> list[str]:
    """The end of the newest log of Serve, then the errors that processes below a replica wrote, such as an engine's: Serve's log has only
    that they ended."""
    served = max((logs / "serve").glob(f"replica_{APPLICATION}_{deployment}_*.log"), key=_modified, default=None)
    return (_lines(served)[-TAIL_LINES:] if served else []) + _errors(logs, deployment)


def last_lines_of_gcs(logs: Path) -> list[str]:
    """Of the process that Ray starts first: where it does not come up, nothing else has written anything."""
    return [line for file in sorted(logs.glob("gcs_server.*")) for line in _lines(file)[-TAIL_LINES:]]


def _errors(logs: Path, deployment: str) -> list[str]:
    """Of the newest replica that wrote any: the one before it may have told more than the one that was just begun."""
    actor = f":actor_name:ServeReplica:{APPLICATION}:{deployment}"
    for file in sorted(logs.glob("worker-*.*"), key=_modified, reverse=True):
        lines = _lines(file)
        if actor in lines and (errors := [line for line in lines if any(mark in line for mark in ERRORS)]):
            return errors[-TAIL_LINES:]
    return []


def _modified(file: Path) -> float:
    return file.stat().st_mtime


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()
