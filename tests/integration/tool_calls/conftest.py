from __future__ import annotations

from collections.abc import Iterator

import pytest
from transformers import PreTrainedTokenizerFast
from vllm.parser.abstract_parser import DelegatingParser

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.frontend.constrained_calls import SYNTAXES, read_constrained_calls
from model_service.engine.frontend.parser_patches import (
    CONVERTING_TWICE,
    escape_surrogates,
    keep_answers_without_calls,
    keep_constrained_arguments,
)
from model_service.engine.frontend.required_tool_calls import replace_required_tool_call_streaming


@pytest.fixture(scope="module", autouse=True)
def _patched() -> Iterator[None]:
    """vLLM's parsers as the engine has them, and as before in the end."""
    methods = {
        **dict.fromkeys(CONVERTING_TWICE, ("_check_skip_tool_parsing", "_fix_arg_types")),
        DelegatingParser: ("_extract_tool_calls", "_extract_tool_calls_streaming"),
        **dict.fromkeys(SYNTAXES, ("adjust_request", "extract_tool_calls", "extract_tool_calls_streaming")),
    }
    with pytest.MonkeyPatch.context() as patch:
        for parser, names in methods.items():
            for name in names:
                patch.setattr(parser, name, getattr(parser, name))
        replace_required_tool_call_streaming()
        keep_constrained_arguments()
        keep_answers_without_calls()
        escape_surrogates()
        read_constrained_calls()
        yield


@pytest.fixture(scope="module")
def vocabulary(marked: PreTrainedTokenizerFast) -> GrammarTokenizer:
    """Of the tokenizer with marks that each module has."""
    return GrammarTokenizer.from_huggingface(marked)
