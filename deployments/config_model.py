"""Settings of the model that is served."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from deployments.config_models import DraftModelSettings, LookaheadDefaults, RewardName, RewardSettings, Section
from deployments.config_values import ExtraArgument, Jumps, NodeLabels, TemplateArgument
from model_service.settings import PromptLookup, adapter_names, by_name, worker_count

EMBEDDED = "embedded"
EMBEDDED_NAME = "maskcast-embedded"
SMOLLM2 = "smollm2"
COME_WITH_IT = frozenset({EMBEDDED, SMOLLM2})
"""Models that need no hub: one of the repository, and one of a package."""
UNKNOWN_CONTEXT = 2048
"""Tokens. Of a model whose configuration does not tell, or has not been looked at: what requests are charged until they are answered."""
MOST_MEMORY = 0.9
"""Of what an engine has of a GPU's memory; the rest is for what vLLM does not count."""


def name_of(path: str) -> str:
    """What a model is called: by its name on the hub, also in a folder of the hub's cache; else by its folder's name."""
    if path == EMBEDDED:
        return EMBEDDED_NAME
    cached = re.search(r"models--([^/]+)--([^/]+)/snapshots/[^/]+/?$", path)
    if cached:
        return f"{cached[1]}/{cached[2]}"
    return Path(path).name if names_folder(path) else path


def names_folder(path: str) -> bool:
    """Rather than a model on the hub (`owner/name`), or one that comes with Maskcast."""
    return path not in COME_WITH_IT and (path.startswith(("/", ".", "~")) or Path(path).is_dir())


class ModelSettings(Section):
    """The model and how its replicas run it."""

    path: str = Field(EMBEDDED, description="a folder, a name on the Hugging Face hub, 'embedded' or 'smollm2'")
    served_name: str = Field(
        default_factory=lambda given: name_of(given.get("path", EMBEDDED)),
        description="what clients put in `model`; where nothing is said, the model's name",
    )
    num_replicas: int = Field(1, ge=1)
    tensor_parallel_size: int = Field(1, ge=1)
    executor: Literal["mp", "ray"] = Field("mp", description="'ray' needs GPUs; its workers may stand on several nodes")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    max_model_len: int | None = Field(
        None, ge=16, description="tokens of prompt and answer together; None: as many as the model can, cut to what the KV cache holds"
    )
    context_length: int | None = Field(None, ge=16, description="of the model; None: as its configuration says")
    max_num_seqs: int | None = Field(
        None, ge=1, description="sequences that run together in one engine; None: vLLM's default for the device"
    )
    cpu_kv_cache_gib: float = Field(0.5, gt=0, description="KV cache of one worker on a CPU, GiB")
    gpu_memory_utilization: float | None = Field(
        None, gt=0, le=1, description="of a GPU's memory, what one engine takes; None: 0.9 of it, or of the part in gpus_per_worker"
    )
    tool_call_parser: str | None = Field(
        None,
        description="vLLM's name for the model's tool call format; None: by its chat template, if that has a format that is known here",
    )
    reasoning_parser: str | None = Field(None, description="vLLM's name for the format of its reasoning; None: by its chat template, too")
    jump_forward: Jumps = Field(
        "auto",
        description="compute what a grammar forces in one forward, without asking the model; 'async': a step is scheduled while the one "
        "ahead of it runs, 'sync': after it, 'auto': as vLLM would; false: ask it for each token",
    )
    prompt_lookup: PromptLookup = Field(
        "auto",
        description="inside free values, what the prompt makes likely is verified, several tokens in one forward; steps are synchronous; "
        "'auto': on a CPU, where the engine can",
    )
    lookahead: bool = Field(False, description="requests may look ahead (`lookahead`)")
    draft: DraftModelSettings | None = Field(None, description="a model that drafts for this one where requests look ahead")
    lookahead_defaults: LookaheadDefaults = LookaheadDefaults()
    rewards: dict[RewardName, RewardSettings] = Field(default_factory=dict, description="rewards that look-aheads can name")
    reward_deadline_s: float = Field(10.0, gt=0, description="the rewards of one step of a look-ahead take at most so long; over it: 504")
    grammar_memory_mib: int = Field(512, ge=1, description="of the grammars that an engine, or a mask broadcaster, keeps loaded")
    count_mask_rows: bool = Field(False, description="count the different mask rows of each step, which takes time, for the metrics")
    masks: Literal["in_process", "broadcaster"] = Field(
        "in_process", description="who fills masks: each engine its own, beside its scheduling; or a process for all engines of a node"
    )
    mask_deadline_ms: float = Field(20.0, gt=0, description="a step waits so long for the broadcaster's masks; then the engine fills them")
    restart_wait_s: float = Field(
        30.0, ge=0, description="requests whose engine has ended, and that no other replica takes, wait so long for the next one; then: 503"
    )
    hang_s: float = Field(
        30.0, ge=15, description="an engine that has requests and does nothing for so long is killed, and another one is started"
    )
    cpus_per_worker: float = Field(0.5, ge=0, description="CPUs that Ray reserves for one worker; 'ray': for the replica itself as well")
    gpus_per_worker: float | None = Field(
        None,
        ge=0,
        le=1,
        description="GPUs that Ray reserves for one worker; 0 on a CPU; a part of one where others share it; None: 1 where there are GPUs",
    )
    nodes: NodeLabels = Field(default_factory=dict, description="labels of the Ray nodes that its replicas stand on; empty: any")
    max_ongoing_requests: int = Field(256, ge=1, description="requests that one replica works on at a time")
    max_queued_requests: int = Field(2048, ge=1, description="requests that wait per ingress, for a seat too; beyond it: 503")
    chat_template_kwargs: tuple[TemplateArgument, ...] = Field(
        ("enable_thinking", "thinking"),
        description="names that requests may have in `chat_template_kwargs`, for the model's template",
    )
    vllm_xargs: tuple[ExtraArgument, ...] = Field(
        (), description="names that requests may have in `vllm_xargs`, which reach into the engine"
    )
    engine_args: dict[str, Any] = Field(default_factory=dict, description="further vLLM engine arguments, as vLLM names them")

    @property
    def gpus(self) -> float:
        """Of one worker; none as long as nobody has looked for them."""
        return self.gpus_per_worker or 0

    @property
    def longest(self) -> int:
        """Tokens of prompt and answer together, at most: an engine may hold fewer."""
        return self.max_model_len or self.context_length or UNKNOWN_CONTEXT

    @property
    def workers(self) -> int:
        """Of one replica."""
        return worker_count(self.tensor_parallel_size, self.engine_args)

    @property
    def gpu_memory(self) -> float:
        """Of a GPU's memory, what one engine takes."""
        return self.gpu_memory_utilization or MOST_MEMORY * (self.gpus or 1)

    @property
    def has_priorities(self) -> bool:
        """Whether its engines schedule requests by priority."""
        return by_name(self.engine_args).get("scheduling_policy") == "priority"

    @property
    def takes_embeddings(self) -> bool:
        """Whether its engines take prompts as embeddings."""
        return bool(by_name(self.engine_args).get("enable_prompt_embeds"))

    @property
    def served_names(self) -> tuple[str, ...]:
        """What a request may put in `model`: the model, and its adapters."""
        return (self.served_name, *adapter_names(self.engine_args))

    @model_validator(mode="after")
    def _adapters_have_names(self) -> Self:
        adapters = adapter_names(self.engine_args)
        if len({*adapters, self.served_name}) <= len(adapters):
            raise ValueError("the model and each of engine_args.lora_modules need names of their own")
        if adapters and not by_name(self.engine_args).get("enable_lora"):
            raise ValueError("engine_args.lora_modules needs engine_args.enable_lora: true")
        return self

    @model_validator(mode="after")
    def _can_be_placed(self) -> Self:
        if self.draft is not None and not self.lookahead:
            raise ValueError("`draft` is for look-aheads: set `lookahead: true`")
        if self.rewards and not self.lookahead:
            raise ValueError("`rewards` are for look-aheads: set `lookahead: true`")
        given = by_name(self.engine_args)
        if int(given.get("data_parallel_size", 1)) > 1:
            raise ValueError("a replica is one engine: in place of engine_args.data_parallel_size, set num_replicas")
        if int(given.get("pipeline_parallel_size", 1)) > 1 and self.gpus_per_worker == 0:
            raise ValueError("vLLM's workers on CPUs are no stages of a pipeline: in place of it, set tensor_parallel_size")
        if given.get("enable_sleep_mode"):
            raise ValueError("nothing puts an engine to sleep here: in place of engine_args.enable_sleep_mode, change num_replicas")
        if given.get("distributed_executor_backend", self.executor) != self.executor:
            raise ValueError("in place of engine_args.distributed_executor_backend, set executor")
        if int(given.get("prefill_context_parallel_size", 1)) > 1:
            raise ValueError("nothing has shown engine_args.prefill_context_parallel_size here: set tensor_parallel_size")
        if self.executor == "ray" and self.gpus_per_worker == 0:
            raise ValueError("executor `ray` needs gpus_per_worker: vLLM's workers on CPUs are children of their replica (`mp`)")
        if self.workers > 1 and 0 < self.gpus < 1:
            raise ValueError("several workers of a replica need a GPU each: set gpus_per_worker to 1")
        return self

    @model_validator(mode="after")
    def _memory_is_shared(self) -> Self:
        """vLLM starts no engine where less is free than it may take."""
        own = float(by_name(self.engine_args).get("gpu_memory_utilization", self.gpu_memory))
        if own > self.gpus > 0:
            raise ValueError(
                "engines that share a GPU share its memory: leave gpu_memory_utilization out, or set less than gpus_per_worker"
            )
        if self.draft is not None and self.gpus:
            draft = float(by_name(self.draft.engine_args).get("gpu_memory_utilization", self.gpu_memory))
            if own + draft >= self.gpus:
                raise ValueError(
                    f"the model and its draft share a GPU, and would take {own:g} and {draft:g} of its memory: set less for "
                    "gpu_memory_utilization, and for draft.engine_args.gpu_memory_utilization"
                )
        return self
