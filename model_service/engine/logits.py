"""What a model that is loaded makes, as its workers have tried it."""

from __future__ import annotations

from model_service.engine.configuration import OUR_WORKERS
from model_service.engine.keyed import KeyedEngine
from model_service.engine.workers.vocabulary_width import check_width


async def check_logits(engine: KeyedEngine) -> None:
    """Raises EngineSettingsError: they are not of the vocabulary. Workers that are not ours do not tell."""
    config = engine.vllm_config
    if config.parallel_config.worker_cls in OUR_WORKERS:
        check_width(await engine.collective_rpc("logits_width"), config.model_config.get_vocab_size())
