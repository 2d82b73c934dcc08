"""Who may call."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path

from deployments.access.caller import Caller, Scope
from deployments.access.key_file import KeyEntry, digest_of, read_keys
from deployments.config import KeyLimits
from deployments.errors import ApiError, SettingsError

logger = logging.getLogger(__name__)
LOOK_S = 1.0
"""The file is looked at no more often than once in so many seconds."""
PLAIN_SCOPES = frozenset({Scope.GENERATE, Scope.GRAMMARS_WRITE, Scope.METRICS})
"""What keys of the settings are for: all but other tenants' grammars, and going before others."""


class ApiKeys:
    """The accepted bearer tokens: `keys`, and those of a file, which is read anew when it changes. With neither, everybody may call.

    A file that cannot be read any more leaves the keys as they were. Constructing raises SettingsError where it never could be.
    """

    def __init__(
        self,
        keys: Iterable[str],
        file: Path | None = None,
        limits: KeyLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`limits` are for what a key's own leave open."""
        self._limits = KeyLimits().over(limits) if limits else KeyLimits()
        self._plain = dict(map(self._plain_caller, keys))
        self._file = file
        self._clock = clock
        self._signature = _signature(file)
        self._look_at = clock() + LOOK_S
        self._callers = self._plain if file is None else {**self._plain, **self._in_file(file)}
        self._everybody = None if self._plain or file else Caller("", frozenset(Scope), self._limits)

    def check(self, authorization: str | None) -> Caller:
        """Who calls. `authorization` is the header's value.

        Raises:
            ApiError: 401.
        """
        if self._everybody is not None:
            return self._everybody
        self._look()
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        # By its digest: how long that takes to be found says nothing of the key, as nobody can choose what a digest begins with.
        caller = self._callers.get(digest_of(token)) if scheme.lower() == "bearer" and token else None
        if caller is None:
            raise ApiError(
                HTTPStatus.UNAUTHORIZED,
                "Incorrect API key. Send it as 'Authorization: Bearer KEY'.",
                code="invalid_api_key",
                kind="authentication_error",
            )
        return caller

    def _look(self) -> None:
        if self._file is None or (now := self._clock()) < self._look_at:
            return
        self._look_at = now + LOOK_S
        signature = _signature(self._file)
        if signature == self._signature:
            return
        self._signature = signature
        try:
            self._callers = {**self._plain, **self._in_file(self._file)}
        except SettingsError as error:
            logger.error("the API keys stay as they are: %s", error)  # the traceback tells nothing more
        else:
            logger.info("API keys read anew: %s", ", ".join(sorted({caller.name for caller in self._callers.values()})))

    def _in_file(self, file: Path) -> Mapping[str, Caller]:
        return {digest: self._caller(entry) for entry in read_keys(file) for digest in entry.sha256}

    def _caller(self, entry: KeyEntry) -> Caller:
        own = entry.limits
        return Caller(entry.name, frozenset(entry.scopes), own.of_tenant.over(self._limits), entry.weight, own.of_request)

    def _plain_caller(self, key: str) -> tuple[str, Caller]:
        digest = digest_of(key.strip())
        # Not by its place in the list: when one is taken out, others would become another tenant.
        return digest, Caller(f"key-{digest[:12]}", PLAIN_SCOPES, self._limits)


def _signature(file: Path | None) -> tuple[int, int, int] | None:
    """What changes with the file, also where a mounted secret is swapped for another; None where it is not there."""
    try:
        found = file.stat() if file is not None else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ino, found.st_size) if found else None
