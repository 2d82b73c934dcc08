"""Places, or bytes, that tenants share without one being anybody's."""

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
        return self.has_room_for(tenant, 1)

    def has_room_for(self, tenant: str, number: int) -> bool:
        """For so many more, which are few of all."""
        free = self._most - self._all
        return free >= number and (not tenant or self._taken[tenant] < EACH * free)

    def take(self, tenant: str, number: int = 1) -> None:
        self._taken[tenant] += number
        self._all += number

    def give_back(self, tenant: str, number: int = 1) -> None:
        self._all -= number
        self._taken[tenant] -= number
        if not self._taken[tenant]:
            del self._taken[tenant]
