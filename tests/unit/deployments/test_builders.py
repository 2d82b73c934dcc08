from __future__ import annotations

from pathlib import Path

from deployments.builders import engine_settings, model_path
from deployments.config import parse_settings


def test_the_embedded_model_is_where_engines_look_for_it() -> None:
    settings = parse_settings({})
    assert (Path(model_path(settings)) / "model.safetensors").is_file()
    assert engine_settings(settings).model == model_path(settings)


def test_the_limit_of_tokens_is_also_for_requests_that_say_nothing() -> None:
    given = {"override_generation_config": {"top_p": 0.5}}
    settings = parse_settings({"limits": {"max_tokens": 100}, "model": {"engine_args": given}})
    assert engine_settings(settings).engine_args == {"override_generation_config": {"top_p": 0.5, "max_new_tokens": 100}}
    assert engine_settings(parse_settings({})).engine_args == {}
