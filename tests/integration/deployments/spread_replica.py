"""An application for Ray Serve whose replica stands on two nodes, where neither has room for all of it."""

from __future__ import annotations

from ray import serve


class Spread:
    """Does nothing."""


deployment = serve.deployment(name="Spread", placement_group_bundles=[{"CPU": 1}, {"CPU": 1}], placement_group_strategy="PACK")
app = deployment(Spread).bind()
