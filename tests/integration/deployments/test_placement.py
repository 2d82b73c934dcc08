"""A replica and its children on a Ray that believes in four GPUs: what they were given, and which Ray they find."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from deployments.config_model import ModelSettings
from deployments.replicas.placement import Placement, place

CORE = """
import ray
ray.init(logging_level="error")  # as vLLM's executor does
print(len(ray.nodes()), ray.cluster_resources()["GPU"], ray.get_runtime_context().gcs_address)
"""


class Replica:
    """Stands where a model replica does."""

    def facts(self, core: str) -> dict[str, Any]:
        from deployments.replica_process import tell_children

        os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
        tell_children()
        child = subprocess.run([sys.executable, "-c", core], capture_output=True, text=True, timeout=120, check=False)
        group = ray.util.get_current_placement_group()
        return {
            "devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "core": child.stdout.split(),
            "stderr": child.stderr,
            "bundles": None if group is None else group.bundle_specs,
            "gcs": ray.get_runtime_context().gcs_address,
        }


def facts(placed: Placement) -> dict[str, Any]:
    group = placement_group(placed.bundles, strategy="PACK")
    try:
        strategy = PlacementGroupSchedulingStrategy(group, 0, placement_group_capture_child_tasks=True)
        actor: Any = ray.remote(Replica).options(**placed.actor, scheduling_strategy=strategy).remote()
        found: dict[str, Any] = ray.get(actor.facts.remote(CORE), timeout=120)
        return found
    finally:
        remove_placement_group(group)


def test_workers_of_ray_have_a_bundle_each_and_the_core_finds_the_ray_it_belongs_to(ray_serve: None) -> None:
    shape = {"tensor_parallel_size": 2, "gpus_per_worker": 1, "cpus_per_worker": 0.25, "engine_args": {"pipeline_parallel_size": 2}}
    found = facts(place(ModelSettings.model_validate({**shape, "executor": "ray"})))
    assert [bundle["GPU"] for bundle in found["bundles"]] == [1, 1, 1, 1]
    assert found["bundles"][0]["CPU"] == 0.5
    assert found["core"] == ["1", "4.0", found["gcs"]], found["stderr"]


def test_workers_that_are_children_see_the_gpus_of_their_replica(ray_serve: None) -> None:
    shape = {"tensor_parallel_size": 2, "gpus_per_worker": 1, "cpus_per_worker": 0.25}
    found = facts(place(ModelSettings.model_validate({**shape, "executor": "mp"})))
    assert len(found["bundles"]) == 1
    assert len(set(found["devices"].split(","))) == 2
