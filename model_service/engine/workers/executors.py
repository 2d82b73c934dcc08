"""vLLM's executors, for masks from the broadcaster (vLLM 0.32: `v1/executor`). A step's masks are waited for where they are sent to the
workers: on a CPU its forward has ended by then, on a GPU it has been launched."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from vllm.config import VllmConfig
from vllm.platforms import current_platform
from vllm.v1.executor import Executor
from vllm.v1.executor.multiproc_executor import MultiprocExecutor
from vllm.v1.executor.uniproc_executor import UniProcExecutor

from model_service.engine.core_options import core_options
from model_service.engine.forking import fork_workers
from model_service.engine.workers.mask_output import MaskDelivery, StepMasks
from model_service.engine.workers.waiting import wait_asleep
from model_service.errors import EngineSettingsError
from model_service.shared_memory import MemoryAddress


class Delivering(Executor):
    """To be put before another executor."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._delivery = MaskDelivery(self._attach)
        super().__init__(*args, **kwargs)

    def sample_tokens(self, grammar_output: Any, non_block: bool = False) -> Any:
        masks = self._delivery.parts(grammar_output) if isinstance(grammar_output, StepMasks) else grammar_output
        return super().sample_tokens(masks, non_block)

    def _attach(self, address: MemoryAddress) -> Future[list[bool]]:
        attached: Future[list[bool]] = self.collective_rpc("attach_masks", args=(address,), non_block=True)
        return attached


class AsleepMultiprocExecutor(MultiprocExecutor):
    """Waits for its workers without taking their CPUs, and forks them where it can."""

    def _init_executor(self) -> None:
        wait_asleep()
        fork_workers()
        super()._init_executor()


class DeliveringUniProcExecutor(Delivering, UniProcExecutor):
    pass


class DeliveringMultiprocExecutor(Delivering, MultiprocExecutor):
    pass


class DeliveringAsleepExecutor(Delivering, AsleepMultiprocExecutor):
    pass


def executor_class(config: VllmConfig) -> type[Executor]:
    """vLLM's choice, as one that delivers masks where they come from a broadcaster.

    Raises:
        EngineSettingsError: there is no such one.
    """
    chosen: type[Executor] = Executor.get_class(config)
    if chosen is MultiprocExecutor and current_platform.is_cpu():
        chosen = _on_cpu(config)
    if core_options(config).broadcaster is None:
        return chosen
    if config.parallel_config.pipeline_parallel_size > 1:
        # More steps are under way than the ring has slots.
        raise EngineSettingsError("masks from a broadcaster do not go with pipeline stages: set `masks: in_process`")
    if chosen is UniProcExecutor:
        return DeliveringUniProcExecutor
    if chosen is MultiprocExecutor:
        return DeliveringMultiprocExecutor
    if chosen is AsleepMultiprocExecutor:
        return DeliveringAsleepExecutor
    if chosen.__name__ == "RayExecutorV2":
        from model_service.engine.workers.ray_executor import DeliveringRayExecutor  # imports Ray

        return DeliveringRayExecutor
    raise EngineSettingsError(f"vLLM's {chosen.__name__} does not deliver masks from a broadcaster: set `masks: in_process`")


def _on_cpu(config: VllmConfig) -> type[Executor]:
    """One worker lives in the engine core's process: the two take turns anyway, and handing a step over and back costs a third of it. vLLM
    gives it a process of its own only to set OpenMP's threads for it, which `environment.py` has done."""
    return UniProcExecutor if config.parallel_config.world_size == 1 else AsleepMultiprocExecutor
