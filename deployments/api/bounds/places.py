"""Places that tenants share without a place being anybody's."""

from __future__ import annotations

from collections import Counter

EACH = 7
"""× what is free: a tenant that has more gets nothing more. One alone has at most seven eighths, so that there is always something for
the next (dynamic thresholds: Choudhury and Hahne, "Dynamic Queue Length Thresholds", 1998)."""


class Places:
    """So many for all tenants; who is nobody, where there are no keys, may have all of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()
        self._all = 0

    def __len__(self) -> int:
        """Those that are taken."""
        return self._all

    def has_one_for(self, tenant: str) -> bool:
        free = self._most - self._all
        return free > 0 and (not tenant or self._taken[tenant] < EACH * free)

    def take(self, tenant: str) -> None:
        self._taken[tenant] += 1
        self._all += 1

    def give_back(self, tenant: str) -> None:
        self._all -= 1
        self._taken[tenant] -= 1
        if not self._taken[tenant]:
            del self._taken[tenant]
