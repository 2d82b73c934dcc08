"""What a request may write while it reasons ahead of its constrained answer (vLLM 0.32: `v1/structured_output/__init__.py`,
`parser/engine/adapters.py`, `parser/plamo3.py`, `reasoning/abs_reasoning_parsers.py`).

vLLM masks nothing there. So an answer may end within its reasoning, and a tool call may begin there, which vLLM takes for the end of the
reasoning: the grammar would then refuse the token that stands already. And nothing makes the reasoning end. Here these tokens are masked,
and once the reasoning has its share of the tokens that the request may have, all are but the next one of its end mark. So are all but
those of the mark that begins it, where the model has to write that (`marked`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from vllm.parser.engine.adapters import ParserEngineReasoningAdapter
from vllm.parser.plamo3 import Plamo3Parser
from vllm.reasoning import ReasoningParser
from vllm.reasoning.cohere_command_reasoning_parser import BaseCohereCommandReasoningParser
from vllm.reasoning.deepseek_v3_reasoning_parser import DeepSeekV3ReasoningParser
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

from grammar_service.canonical.packed_rows import bits_of
from model_service.engine.reasoning.marked import MOST_TOKENS, EndSearch, ReasoningMarks, Straddling, end_of, marks_of

_COHERE_BEGINS = ("<|START_ACTION|>", "<|START_RESPONSE|>", "<|START_TEXT|>")
_MISTRAL_CALLS = "[TOOL_CALLS]"
_PLAMO_BEGINS = "<|plamo:begin_"
SHARE = 2
"""The reasoning may have one in so many of the tokens that the request may have, where the client does not say."""


@dataclass(frozen=True, slots=True)
class EndMarks:
    """`end`: the tokens that end the reasoning, none where they are not known; `others`: those that vLLM takes for its end as well;
    `begin`: those with which the model begins it."""

    end: tuple[int, ...] = ()
    others: frozenset[int] = frozenset()
    begin: tuple[int, ...] = ()

    def next_of(self, written: Sequence[int], drafts: int) -> int:
        """The token of `end` that follows those of it with which `written` ends, and so many drafts, which were the ones that follow."""
        longest = min(len(self.end) - 1, len(written))
        stands = next((length for length in range(longest, 0, -1) if tuple(written[-length:]) == self.end[:length]), 0)
        return self.end[min(stands + drafts, len(self.end) - 1)]


class ReasoningMasks:
    """Of an engine's requests. `vocabulary` is the tokens' texts."""

    def __init__(self, vocabulary: Sequence[bytes], vocab_size: int) -> None:
        self._vocabulary = vocabulary
        self._vocab_size = vocab_size
        self._straddling: dict[ReasoningMarks, Straddling] = {}

    def of(self, manager: StructuredOutputManager, request: Request) -> ReasoningMask:
        """Raises what the reasoning parser does when it is made for the request."""
        reasoner, straddling, prompt = manager._get_reasoner(request), None, request.prompt_token_ids or ()
        known = end_marks(reasoner) if reasoner is not None else EndMarks()
        if (marks := marks_of(reasoner)) is not None:
            if not marks.is_token:
                # A look at all tokens takes 0.1 s.
                straddling = self._straddling.get(marks) or self._straddling.setdefault(marks, Straddling(marks, self._vocabulary))
                vars(reasoner)["is_reasoning_end_streaming"] = EndSearch(marks, reasoner, len(prompt))
            if marks.is_open_in(end_of(prompt, reasoner)):
                known = replace(known, begin=())
        return ReasoningMask(known, request, self._vocab_size, self._vocabulary, straddling)


class ReasoningMask:
    """Of one request, for the scheduler's thread."""

    def __init__(
        self, marks: EndMarks, request: Request, vocab_size: int, vocabulary: Sequence[bytes], straddling: Straddling | None = None
    ) -> None:
        stops = {*request.sampling_params.all_stop_token_ids, request.sampling_params.eos_token_id}
        # Where nothing can make the reasoning end, the end of the answer must.
        masked = marks.others | stops if marks.end else marks.others
        self._marks = marks
        self._request = request
        self._vocabulary = vocabulary
        self._straddling = straddling
        self._most = max_reasoning_tokens(request)
        self._open = _row(vocab_size, without=[token for token in masked - {*marks.end, None} if token < vocab_size])
        self._only = {token: _row(vocab_size, only=token) for token in (*marks.end, *marks.begin)}

    def row(self, drafts: int) -> torch.Tensor | None:
        """int32 [ceil(V/32)], bit set = allowed, behind so many drafts; None where the reasoning has ended."""
        if self._request.structured_output_request.reasoning_ended:
            return None
        written = self._request.num_output_tokens
        if written + drafts < len(self._marks.begin):
            return self._only[self._marks.begin[written + drafts]]
        if not self._marks.end or written < self._most:
            return self._open if self._straddling is None else self._without(self._straddling, drafts)
        return self._only[self._marks.next_of(self._request.output_token_ids, drafts)]

    def _without(self, straddling: Straddling, drafts: int) -> torch.Tensor:
        """Which tokens the drafts are, nobody tells here."""
        last = self._request.output_token_ids[-MOST_TOKENS:]
        masked = straddling.tokens if drafts else straddling.behind(b"".join(self._vocabulary[token] for token in last))
        return _cleared(self._open.clone(), masked) if masked else self._open


def max_reasoning_tokens(request: Request) -> int:
    """Tokens. A client's budget is kept by vLLM, which counts from where the reasoning begins, and may write a sentence before the mark:
    beside one, this is for reasoning that never begins."""
    return max(int(request.max_tokens) // SHARE, request.sampling_params.thinking_token_budget or 0)


def end_marks(reasoner: ReasoningParser) -> EndMarks:
    """As far as they are known beforehand."""
    if isinstance(reasoner, DeepSeekV3ReasoningParser):
        reasoner = reasoner._parser
    if (marks := marks_of(reasoner)) is not None:
        calls = [token for text, token in reasoner.vocab.items() if text == _MISTRAL_CALLS]
        begin = _tokens(reasoner, marks.begin) if marks.writes_begin else ()
        return EndMarks(_tokens(reasoner, marks.end), frozenset(calls), begin)
    others = frozenset[int]()
    if isinstance(reasoner, ParserEngineReasoningAdapter):
        ends = reasoner.reasoning_end_token_ids
        others = frozenset(token for token in ends if reasoner.find_reasoning_end([token]).implicit)
        if ends - others:
            return EndMarks((min(ends - others),), others)
        if isinstance(reasoner._parser_engine, Plamo3Parser) and _PLAMO_BEGINS in reasoner.vocab:
            # vLLM knows no marks of several tokens here. In reasoning, only that of calls begins so.
            others = frozenset({reasoner.vocab[_PLAMO_BEGINS]})
    if isinstance(reasoner, BaseCohereCommandReasoningParser):
        # For vLLM's parser, and not for its engine, they end the reasoning.
        others = frozenset(reasoner.vocab[mark] for mark in _COHERE_BEGINS if mark in reasoner.vocab)
    text = reasoner.reasoning_end_str
    end = reasoner.model_tokenizer.encode(text, add_special_tokens=False) if text else []
    # What some of them tell is not the end yet.
    return EndMarks(tuple(end) if end and reasoner.is_reasoning_end(end) else (), others)


def mask_reasoning(manager: StructuredOutputManager) -> None:
    """Let `manager`, which fills the rows of requests that reason with all tokens, fill them with what `KeyedGrammar.reasoning` allows.
    Where there are drafts, it fills each row by itself."""
    first, masks_of_step = dict[int, int](), manager.grammar_bitmask

    def grammar_bitmask(*arguments: Any, **named: Any) -> Any:
        first.clear()
        return masks_of_step(*arguments, **named)

    def fill(batch: Iterable[tuple[StructuredOutputGrammar, int, bool]]) -> None:
        rows = manager._grammar_bitmask
        for grammar, index, is_constrained in batch:
            mask = None if is_constrained else getattr(grammar, "reasoning", None)
            drafts = index - first.setdefault(id(grammar), index)
            row = mask.row(drafts) if mask is not None else None
            if is_constrained and not grammar.is_terminated():
                grammar.fill_bitmask(rows, index)
            elif row is not None:
                rows[index].copy_(row)
            else:
                rows[index].fill_(-1)

    manager._fill_bitmasks = fill
    manager.grammar_bitmask = grammar_bitmask


def _tokens(reasoner: ReasoningParser, text: str) -> tuple[int, ...]:
    """Tokenizers of Mistral's make no special tokens of a text."""
    token = reasoner.vocab.get(text)
    return (token,) if token is not None else tuple(reasoner.model_tokenizer.encode(text, add_special_tokens=False) if text else ())


def _row(vocab_size: int, *, without: Iterable[int] = (), only: int | None = None) -> torch.Tensor:
    row = torch.full(((vocab_size + 31) // 32,), -1 if only is None else 0, dtype=torch.int32)
    words = row.numpy()
    for word, bit in bits_of(() if only is None else (only,)):
        words[word] |= bit
    return _cleared(row, without)


def _cleared(row: torch.Tensor, tokens: Iterable[int]) -> torch.Tensor:
    words = row.numpy()
    for word, bit in bits_of(tokens):
        words[word] &= ~bit
    return row
