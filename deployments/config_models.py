"""Settings of models beside the one that is served."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

MOST = 16
RewardName = Annotated[str, StringConstraints(pattern="^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
IMPORT_PATH = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"


class Section(BaseModel):
    """A part of the settings: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=(), coerce_numbers_to_str=True)


class DraftModelSettings(Section):
    """A model with the tokens of another, and a part of its size."""

    path: str = Field(description="a folder, or a name on the Hugging Face hub")
    engine_args: dict[str, Any] = Field(default_factory=dict, description="further vLLM arguments of its engine, as vLLM names them")


class LookaheadDefaults(Section):
    """For look-aheads that say nothing of them."""

    a_t: float = Field(0.6, gt=0, le=1, description="the share of its drafts that the model must accept")
    r_t: float = Field(0.3, allow_inf_nan=False, description="the reward that drafts must earn")
    b: int = Field(0, ge=0, le=MOST, description="how many tokens the model may say alone; at most `d` of the request")


class RewardSettings(Section):
    """A reward that requests can name: of a classifier, or of a class of the operator's own."""

    classifier: str | None = Field(None, description="a sequence classifier: a folder, or a name on the Hugging Face hub")
    label: str | None = Field(None, description="whose probability is the reward; None: the classifier has only one")
    batch: int = Field(32, ge=1, description="texts that the classifier computes together")
    import_path: str | None = Field(None, pattern=IMPORT_PATH, description="MODULE:NAME; called with `args`, has a method `score(texts)`")
    args: dict[str, Any] = Field(default_factory=dict)
    num_replicas: int = Field(1, ge=1)
    cpus: float = Field(0.1, ge=0, description="CPUs that Ray reserves for a replica")
    gpus: float = Field(0, ge=0, description="GPUs that it reserves; over 0, the classifier is computed there")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.classifier is None) == (self.import_path is None):
            raise ValueError("a reward has a `classifier` or an `import_path`")
        if self.import_path is None and self.args:
            raise ValueError("`args` are for an `import_path`")
        if self.classifier is None and self.label is not None:
            raise ValueError("`label` is for a `classifier`")
        return self
