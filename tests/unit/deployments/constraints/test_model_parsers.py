"""What an operator is told of a model's parsers at the start."""

from __future__ import annotations

import pytest

from deployments.constraints.model_parsers import refusals


@pytest.mark.parametrize(
    ("tool_parser", "told"),
    [
        (None, []),
        ("hermes", []),
        ("hf", ["model.tool_call_parser 'hf': strict tools, and forced calls are a 400"]),
    ],
)
def test_what_is_refused_is_told(tool_parser: str | None, told: list[str]) -> None:
    lines = refusals(tool_parser)
    assert len(lines) == len(told)
    assert all(line.startswith(beginning) for line, beginning in zip(lines, told, strict=True))
