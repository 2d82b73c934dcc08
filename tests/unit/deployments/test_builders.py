from __future__ import annotations

from pathlib import Path

from deployments.builders import engine_settings, model_path
from deployments.config import parse_settings


def test_the_embedded_model_is_where_engines_look_for_it() -> None:
    settings = parse_settings({})
    assert (Path(model_path(settings)) / "model.safetensors").is_file()
    assert engine_settings(settings).model == model_path(settings)
