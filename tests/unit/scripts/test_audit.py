"""What `scripts/audit` makes of what its tools say."""

from __future__ import annotations

import re

from tests.published.scripts import script

AUDIT = script("audit")


def test_a_package_without_a_hash_is_seen_in_a_bill_of_materials() -> None:
    hashed = {"name": "one", "externalReferences": [{"type": "website"}, {"type": "distribution", "hashes": [{"alg": "SHA-256"}]}]}
    bare = {"name": "two", "externalReferences": [{"type": "distribution"}]}
    assert AUDIT.without_hash({"components": [hashed]}) == []
    assert AUDIT.without_hash({"components": [hashed, bare, {"name": "three"}]}) == ["two", "three"]


def test_its_tools_are_pinned() -> None:
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", pin) for pin in AUDIT.PINS)
