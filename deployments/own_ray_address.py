"""The Ray that a replica belongs to, for its children: vLLM's engine core is one, and places its workers with Ray (Ray 2.60, vLLM 0.32).

Only `ray start` writes down where a Ray is. Who looks for one without being told starts another, which knows of no placement group. vLLM
tells its children itself, but not where it is told how to start them (`VLLM_WORKER_MULTIPROC_METHOD`).
"""

from __future__ import annotations

import os

from ray import get_runtime_context


def tell_children() -> None:
    """For the constructor of a replica; holds for all that this process starts from here on."""
    os.environ["RAY_ADDRESS"] = get_runtime_context().gcs_address
