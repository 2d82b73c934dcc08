"""Whether data is ours: HMAC-SHA-256 under secrets that only our processes know.

Two secrets are valid while one replaces the other: whoever has the new one still reads what the old one has sealed, and vice versa.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

MAC_BYTES = 32
Secret = bytes | tuple[bytes, ...]
"""Of several, the first seals, and all are believed."""


def mac_of(secret: Secret, *parts: bytes | memoryview) -> bytes:
    """The MAC of the parts, one after the other, under the secret that seals; linear in their bytes."""
    return _mac(secret if isinstance(secret, bytes) else secret[0], parts)


def holds(mac: bytes, secret: Secret, *parts: bytes | memoryview) -> bool:
    """Whether it is the MAC of the parts under a secret that is believed. What it is compared with is not told by how long that takes."""
    secrets = (secret,) if isinstance(secret, bytes) else secret
    return any(hmac.compare_digest(_mac(each, parts), mac) for each in secrets)


def _mac(secret: bytes, parts: tuple[bytes | memoryview, ...]) -> bytes:
    made = hmac.new(secret, digestmod=sha256)
    for part in parts:
        made.update(part)
    return made.digest()
