"""Reasoning ahead of constrained answers, in vLLM's front end (0.32: `entrypoints/openai/chat_completion/protocol.py`,
`parser/abstract_parser.py`).

`include_reasoning: false` lets vLLM constrain an answer from its first token, in the middle of the reasoning that the prompt has begun: the
answer is then taken for reasoning, and left out. And where a prompt's reasoning has ended, a streamed answer is all content, while a whole
one is all reasoning if the parser expects some.
"""

from __future__ import annotations

from collections.abc import Sequence

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.parser.abstract_parser import DelegatingParser, Parser

from model_service.messages import KEY_ARGUMENT

_PROMPT = "_maskcast_prompt"


def replace_reasoning_parsing() -> None:
    """For all requests of this process."""
    extract = DelegatingParser.extract_reasoning

    def extract_reasoning(
        parser: DelegatingParser, text: str, request: ChatCompletionRequest | ResponsesRequest
    ) -> tuple[str | None, str | None]:
        prompt = getattr(parser, _PROMPT, None)
        if prompt and KEY_ARGUMENT in (request.vllm_xargs or {}) and parser.is_reasoning_end(prompt):
            return None, text
        found: tuple[str | None, str | None] = extract(parser, text, request)
        return found

    ChatCompletionRequest.resolve_reasoning_ended = reasoning_ended
    DelegatingParser.extract_reasoning = extract_reasoning
    DelegatingParser.set_prompt_token_ids = _keep_prompt


def reasoning_ended(request: ChatCompletionRequest, parser: Parser | None, prompt: list[int]) -> bool | None:
    """Whether an answer to the prompt begins behind its reasoning; None: the model does not reason."""
    if parser is None or parser.reasoning_parser is None:
        return None
    return bool(parser.is_reasoning_end(prompt))


def _keep_prompt(parser: Parser, prompt: Sequence[int]) -> None:
    setattr(parser, _PROMPT, list(prompt))
