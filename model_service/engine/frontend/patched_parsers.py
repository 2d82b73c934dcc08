"""All that Maskcast changes in how vLLM reads answers, in one place for engines and for tests of what they read."""

from __future__ import annotations

from functools import cache

from model_service.engine.frontend import parser_patches
from model_service.engine.frontend.cohere_calls import read_cohere_calls
from model_service.engine.frontend.constrained_calls import read_constrained_calls
from model_service.engine.frontend.kimi_answers import read_kimi_answers
from model_service.engine.frontend.reasoning import replace_reasoning_parsing
from model_service.engine.frontend.required_tool_calls import replace_required_tool_call_streaming


@cache
def patch_parsers() -> None:
    """Once a process, whose parsers are the same for all engines."""
    replace_required_tool_call_streaming()
    parser_patches.replace_tool_call_patterns()
    parser_patches.disable_mistral_grammars()
    parser_patches.keep_split_characters()
    parser_patches.keep_constrained_arguments()
    parser_patches.convert_each_call_by_its_tool()
    parser_patches.join_arguments()
    parser_patches.keep_answers_without_calls()
    parser_patches.escape_surrogates()
    read_constrained_calls()
    read_cohere_calls()
    parser_patches.split_streams_at_calls()
    parser_patches.admit_named_kimi_calls()
    read_kimi_answers()
    replace_reasoning_parsing()
