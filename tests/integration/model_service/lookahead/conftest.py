"""Engines that look ahead, and what they must compute: the same model, by torch alone, one text at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from deployments.builders import EMBEDDED_WEIGHTS
from model_service.settings import DraftSettings
from tests.integration.model_service.lookahead.named_rewards import named
from tests.integration.model_service.lookahead.torch_model import TorchModel
from tests.integration.model_service.running_engine import RunningEngine, running_engine
from tests.one_thread import one_thread

NOISE = 0.15


@pytest.fixture(scope="package")
def chunked() -> Iterator[RunningEngine]:
    """It computes at most 64 tokens a step, and keeps what it has computed, but not much of it."""
    arguments = {"max_num_batched_tokens": 64, "num_gpu_blocks_override": 80}
    with running_engine(lookahead=True, max_num_seqs=48, engine_args=arguments) as engine:
        yield engine


@pytest.fixture(scope="package")
def forgetful() -> Iterator[RunningEngine]:
    """It computes prompts at once, keeps nothing, and has many seats."""
    with running_engine(named(), lookahead=True, max_num_seqs=160, engine_args={"enable_prefix_caching": False}) as engine:
        yield engine


@pytest.fixture(scope="package")
def draft_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model, with noise in its weights: it often says the same."""
    folder = tmp_path_factory.mktemp("draft")
    shutil.copytree(EMBEDDED_WEIGHTS, folder, dirs_exist_ok=True)
    noise = torch.Generator().manual_seed(3)
    weights = load_file(folder / "model.safetensors")
    noisy = {name: weight + NOISE * weight.std() * torch.randn(weight.shape, generator=noise) for name, weight in weights.items()}
    save_file({name: weight.to(weights[name].dtype) for name, weight in noisy.items()}, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.fixture(scope="package")
def drafted(draft_folder: Path) -> Iterator[RunningEngine]:
    with running_engine(lookahead=True, draft=DraftSettings(str(draft_folder))) as engine:
        yield engine


@pytest.fixture(scope="package")
def alone() -> Iterator[None]:
    """Engines have their threads in processes of their own."""
    with one_thread():
        yield


@pytest.fixture(scope="package")
def torch_draft(alone: None, draft_folder: Path) -> TorchModel:
    return TorchModel(draft_folder)


@pytest.fixture(scope="package")
def torch_model(alone: None) -> TorchModel:
    return TorchModel(EMBEDDED_WEIGHTS)
