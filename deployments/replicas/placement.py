"""What Ray reserves for one model replica: a pure function of the settings."""

from __future__ import annotations

from dataclasses import dataclass

from deployments.config_model import ModelSettings


@dataclass(frozen=True)
class Placement:
    """`actor` is what the replica's own process takes of the first bundle; resources are counts of CPUs and GPUs."""

    actor: dict[str, float]
    bundles: list[dict[str, float]]


def place(model: ModelSettings) -> Placement:
    """One bundle a worker for vLLM's `ray` executor, whose workers are Ray actors that may stand on several nodes, and in the first one
    the replica itself as well, with its engine core; otherwise one bundle for all, since the workers are then children of the replica and
    see the devices that it was given."""
    cpus, gpus, workers = model.cpus_per_worker, model.gpus, model.workers
    if model.executor == "ray":
        others = [_bundle(cpus, gpus) for _ in range(workers - 1)]
        return Placement({"num_cpus": cpus, "num_gpus": 0}, [_bundle(2 * cpus, gpus), *others])
    cpus, gpus = cpus * workers, gpus * workers
    return Placement({"num_cpus": cpus, "num_gpus": gpus}, [_bundle(cpus, gpus)])


def _bundle(cpus: float, gpus: float) -> dict[str, float]:
    return {"CPU": cpus, "GPU": gpus} if gpus else {"CPU": cpus}
