"""How many objects Ray knows of (the raylet's statistics of Ray 2.60)."""

from __future__ import annotations

import ray
from ray._private.internal_api import node_stats


def count_objects() -> int:
    """References in scope in all processes of this node, and objects in its store. The process must be connected to Ray."""
    (node,) = ray.nodes()
    stats = node_stats(node["NodeManagerAddress"], node["NodeManagerPort"], include_memory_info=False)
    held = sum(worker.num_object_refs_in_scope for worker in stats.core_workers_stats)
    return int(held + stats.store_stats.num_local_objects)
