"""What a request may write while it reasons ahead of its constrained answer (vLLM 0.32: `v1/structured_output/__init__.py`,
`parser/engine/adapters.py`, `reasoning/basic_parsers.py`).

vLLM masks nothing there. So an answer may end within its reasoning, and a tool call may begin there, which vLLM takes for the end of the
reasoning: the grammar would then refuse the token that stands already. And nothing makes the reasoning end. Here these tokens are masked,
and once the reasoning has its share of the tokens that the request may have, all are but its end mark, where that is one token.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from vllm.parser.engine.adapters import ParserEngineReasoningAdapter
from vllm.reasoning import ReasoningParser
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser
from vllm.reasoning.deepseek_v3_reasoning_parser import DeepSeekV3ReasoningParser
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

from grammar_service.canonical.packed_rows import bits_of

SHARE = 2
"""The reasoning may have one in so many of the tokens that the request may have, where the client does not say."""


@dataclass(frozen=True, slots=True)
class EndMarks:
    """`end`: the token that ends the reasoning, None where that is no single one; `others`: those that vLLM takes for its end as well."""

    end: int | None
    others: frozenset[int] = frozenset()


class ReasoningMask:
    """Of one request, for the scheduler's thread. Raises what the reasoning parser does when it is made for the request."""

    def __init__(self, manager: StructuredOutputManager, request: Request, vocab_size: int) -> None:
        reasoner = manager._get_reasoner(request)
        marks = end_marks(reasoner) if reasoner is not None else EndMarks(None)
        stops = {*request.sampling_params.all_stop_token_ids, request.sampling_params.eos_token_id}
        # Where nothing can make the reasoning end, the end of the answer must.
        masked = marks.others if marks.end is None else marks.others | stops
        self._request = request
        self._most = max_reasoning_tokens(request)
        self._open = _row(vocab_size, without=[token for token in masked - {marks.end, None} if token < vocab_size])
        self._ending = None if marks.end is None else _row(vocab_size, only=marks.end)

    def row(self) -> torch.Tensor | None:
        """int32 [ceil(V/32)], bit set = allowed; None where the reasoning has ended."""
        if self._request.structured_output_request.reasoning_ended:
            return None
        is_over = self._request.num_output_tokens >= self._most
        return self._ending if is_over and self._ending is not None else self._open


def max_reasoning_tokens(request: Request) -> int:
    """Tokens. A client's budget is kept by vLLM, which counts from where the reasoning begins, and may write a sentence before the mark:
    beside one, this is for reasoning that never begins."""
    return max(int(request.max_tokens) // SHARE, request.sampling_params.thinking_token_budget or 0)


def end_marks(reasoner: ReasoningParser) -> EndMarks:
    """As far as they are known beforehand."""
    if isinstance(reasoner, DeepSeekV3ReasoningParser):
        reasoner = reasoner._parser
    if isinstance(reasoner, BaseThinkingReasoningParser):
        return EndMarks(reasoner.end_token_id)
    if isinstance(reasoner, ParserEngineReasoningAdapter):
        ends = reasoner.reasoning_end_token_ids
        others = frozenset(token for token in ends if reasoner.find_reasoning_end([token]).implicit)
        return EndMarks(next(iter(ends - others), None), others)
    return EndMarks(None)


def mask_reasoning(manager: StructuredOutputManager) -> None:
    """Let `manager`, which fills the rows of requests that reason with all tokens, fill them with what `KeyedGrammar.reasoning` allows."""

    def fill(batch: Iterable[tuple[StructuredOutputGrammar, int, bool]]) -> None:
        rows = manager._grammar_bitmask
        for grammar, index, is_constrained in batch:
            mask = None if is_constrained else getattr(grammar, "reasoning", None)
            row = mask.row() if mask is not None else None
            if is_constrained and not grammar.is_terminated():
                grammar.fill_bitmask(rows, index)
            elif row is not None:
                rows[index].copy_(row)
            else:
                rows[index].fill_(-1)

    manager._fill_bitmasks = fill


def _row(vocab_size: int, *, without: Iterable[int] = (), only: int | None = None) -> torch.Tensor:
    row = torch.full(((vocab_size + 31) // 32,), -1 if only is None else 0, dtype=torch.int32)
    words = row.numpy()
    for word, bit in bits_of(without):
        words[word] &= ~bit
    for word, bit in bits_of(() if only is None else (only,)):
        words[word] |= bit
    return row
