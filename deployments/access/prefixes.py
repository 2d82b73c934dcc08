"""Keeps tenants from each other's prefix cache.

An engine computes a prompt's beginning only once, and the next request that begins alike is faster and is told how many tokens were
cached: who tries beginnings learns what others have asked. vLLM takes a salt into the hashes of its blocks, and here each tenant has its
own.
"""

from __future__ import annotations

from typing import Any

from grammar_service.mac import Secret, mac_of

SALT = "cache_salt"
"""vLLM's field, which clients may set to divide their own prompts further."""
_PURPOSE = b"maskcast prefix salt\x00"


class TenantPrefixes:
    """`secret` is the same at all ingresses, or else they share less; with `shared`, requests stay as they are."""

    def __init__(self, secret: Secret, *, shared: bool) -> None:
        self._secret = secret
        self._shared = shared

    def salted(self, body: dict[str, Any], tenant: str) -> dict[str, Any]:
        """The body, or one in its place that shares prefixes only with its tenant's requests of the same salt. A salt that is no text is
        left to the engine to refuse."""
        asked = body.get(SALT)
        if self._shared or not (tenant or asked) or not isinstance(asked, str | None) or asked == "":
            return body
        return {**body, SALT: self._mac(tenant, asked)}

    def _mac(self, tenant: str, asked: str | None) -> str:
        name, salt = tenant.encode(), b"" if asked is None else b"=" + asked.encode("utf-8", "surrogatepass")
        # The length keeps the two apart.
        return mac_of(self._secret, _PURPOSE, len(name).to_bytes(4, "little"), name, salt).hex()
