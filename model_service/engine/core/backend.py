"""Our structured-output backend inside vLLM's engine core (vLLM 0.32: `v1/structured_output/backend_types.py`).

vLLM hands `compile_grammar` a string; ours holds a grammar key. The grammar is loaded from the artifact that the replica offers: from
its tables, or from the recipe of one that has compiled in the sandbox, and compiles faster than its tables can be read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from grammar_service.backends import Matcher
from grammar_service.backends.canonical.matcher import CanonicalMatcher
from grammar_service.backends.canonical.product import ProductMatcher
from grammar_service.backends.channels.harmony import harmony_frame
from grammar_service.backends.mask_budget import MAX_STALL_S, SLOW_MASK_S, Effort, MaskTimeBudget, SearchBudget
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.segments import NOTHING, Segment, Segmenter
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.core.grammar_loading import GrammarLoader, tenant_of
from model_service.engine.key_constraint import key_of
from model_service.engine.reasoning.masks import ReasoningMask, ReasoningMasks, mask_reasoning
from model_service.engine.reasoning.parsers import read_reasoning_by_prompt
from model_service.errors import GrammarMemoryFull
from model_service.loaded_grammars import LoadedGrammar, LoadedGrammars, MatcherUse

logger = logging.getLogger(__name__)
T = TypeVar("T")
ENDED = "ending a request: its grammar has failed"
_HARMONY_TEXT = "<|endoftext|>"
"""gpt-oss names it among the tokens that end an answer, and vLLM's parser takes it for text."""


class KeyedGrammar(StructuredOutputGrammar):
    """Adapts one request's matcher to vLLM. `on_failure` is called once when the grammar fails; its argument says whether it was too slow.
    `use` counts what the matcher takes for all requests of its grammar; None: nobody counts. What fails ends the request: an error that
    reached vLLM would end the engine."""

    def __init__(self, matcher: Matcher, on_failure: Callable[[bool], None] = lambda _: None, use: MatcherUse | None = None) -> None:
        self._matcher = matcher
        self._on_failure = on_failure
        self._use = use
        self._mask_budget = MaskTimeBudget()
        self._search = SearchBudget()
        self._ahead = 0
        self._violated = False
        self.reasoning: ReasoningMask | None = None
        """What may stand before the constrained answer."""

    @property
    def matcher(self) -> Matcher:
        return self._matcher

    @property
    def canonical(self) -> CanonicalMatcher | None:
        """The matcher, where it keeps to the tokenizer's own tokens as far as it can."""
        return self._matcher if isinstance(self._matcher, CanonicalMatcher) else None

    @property
    def is_canonical(self) -> bool:
        """Whether the answer is to keep to these tokens."""
        return isinstance(self._matcher, CanonicalMatcher | ProductMatcher)

    def advance(self, tokens: Sequence[int]) -> bool:
        """Take tokens; False where one of them is forbidden."""

        # What follows termination (a stop token that vLLM appends) is not the grammar's concern.
        def take() -> bool:
            matcher = self.matcher
            return all(matcher.is_terminated() or matcher.accept(token) for token in tokens)

        return self._take(take, len(tokens))

    def advance_ahead(self, tokens: Sequence[int]) -> bool:
        """Take tokens that vLLM will offer once more, and then be told whether they were allowed."""
        self._ahead += len(tokens)
        if not self._violated and not self.advance(tokens):
            self._fail()
        return not self._violated

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Returns False if a token is forbidden; vLLM then ends the request with an error."""
        known, self._ahead = self._ahead, 0
        if not self._violated and not self.advance(tokens[known:]):
            self._fail()
        return not self._violated

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        valid = 0 if self.must_end else self._counted(lambda: accepted_prefix(self.matcher, tokens), 0)
        return [] if self._violated else tokens[:valid]

    def rollback(self, num_tokens: int) -> None:
        self._counted(lambda: self.matcher.rollback(num_tokens), None)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        self.timed_fill(self.matcher, bitmask, batch_index)

    def timed_fill(self, matcher: Matcher, bitmask: torch.Tensor, row: int) -> None:
        """Fill a row with the mask of `matcher`, this request's own or the one that it wraps, and count what it takes. A request that must
        end may have any token, none of which will be accepted."""
        if self.must_end:
            bitmask[row].fill_(-1)
        else:
            self._counted(lambda: matcher.fill(bitmask, row), None)

    def forced(self, find: Callable[[], Segment]) -> Segment:
        """The segment that `find` returns, forced or drafted. Returns NOTHING once searching has taken longer than it saves."""
        segment = NOTHING
        if self.must_end or self._search.is_spent:
            return segment
        effort = Effort()
        try:
            segment = find()
        except Exception:
            logger.exception(ENDED)
            self._fail()
        seconds, grown_bytes = effort.spent()
        self._search.spend(seconds, len(segment.tokens))
        self._charge(seconds / max(1, len(segment.tokens)), grown_bytes)
        return segment

    @contextmanager
    def watched(self, *, counts_time: bool = True) -> Iterator[None]:
        """Counts the time, unless that has a bound of its own, and the memory of a block against the budgets of the request and its
        grammar. An exception in it fails the request."""
        effort = Effort()
        try:
            yield
        except Exception:
            logger.exception(ENDED)
            self._fail()
        seconds, grown_bytes = effort.spent()
        self._spend(seconds if counts_time else 0.0, grown_bytes)

    def _take(self, take: Callable[[], bool], tokens: int) -> bool:
        """What `take` says of so many tokens; False where it raises."""
        return not self.must_end and self._counted(take, False, tokens)

    def _counted(self, work: Callable[[], T], otherwise: T, tokens: int = 1) -> T:
        """What `work` returns, whose time and memory are counted; `otherwise` where it raises, which fails the request."""
        effort, result = Effort(), otherwise
        try:
            result = work()
        except Exception:
            logger.exception(ENDED)
            self._fail()
        self._spend(*effort.spent(), tokens)
        return result

    @property
    def must_end(self) -> bool:
        """Whether it has failed, or its grammar takes too much: more work must not be begun."""
        if self._use is not None and self._use.must_end():
            self._fail()
        return self._violated

    def _spend(self, seconds: float, grown_bytes: int, tokens: int = 1) -> None:
        """Many tokens may take as long as a slow mask each, but not in one piece."""
        each = seconds / max(1, tokens)
        if self._mask_budget.spend(each) or seconds > MAX_STALL_S:
            self._fail(is_slow=True)
        self._charge(each, grown_bytes)

    def _charge(self, seconds: float, grown_bytes: int) -> None:
        """For a token. Mostly there is nothing that counts."""
        if (seconds > SLOW_MASK_S or grown_bytes) and self._use is not None and self._use.charge(seconds, grown_bytes):
            self._fail()

    def _fail(self, is_slow: bool = False) -> None:
        if not self._violated:
            self._violated = True
            self._on_failure(is_slow)

    def is_terminated(self) -> bool:
        return self.matcher.is_terminated()

    def reset(self) -> None:
        self.matcher.reset()


class ArtifactBackend(StructuredOutputBackend):
    """Serves every structured request of an engine, whichever of our backends compiled its grammar."""

    def __init__(
        self,
        vllm_config: Any,
        tokenizer: Any,
        vocab_size: int,
        channel: str,
        max_rollback_tokens: int,
        grammar_bytes: int,
        verified_rows: int = 0,
    ) -> None:
        """`grammar_bytes`: of the grammars that stay loaded. `verified_rows`: how many masks a step may need where some are for drafts that
        vLLM's configuration knows nothing of."""
        super().__init__(vllm_config=vllm_config, tokenizer=tokenizer, vocab_size=vocab_size)
        vocabulary = GrammarTokenizer.from_huggingface(tokenizer, vocab_size)
        # Python code that takes a while for a large vocabulary: now, since later it would hold up the engine's steps.
        _ = vocabulary.spaces, vocabulary.names
        self._vocabulary = vocabulary
        self.grammars = LoadedGrammars(vocabulary, grammar_bytes)
        self._channel = channel
        self._wanted = threading.local()
        """`tenant`: whose request the thread makes a grammar for."""
        self._max_rollback_tokens = max_rollback_tokens
        self._verified_rows = verified_rows
        is_harmony = vllm_config.model_config.hf_config.model_type == "gpt_oss"
        _ = harmony_frame(vocabulary) if is_harmony else vocabulary.special_tokens and vocabulary.xgrammar_with_specials
        self._read_as_text = {tokenizer.convert_tokens_to_ids(_HARMONY_TEXT)} if is_harmony else set[int]()

    @property
    def vocabulary(self) -> GrammarTokenizer:
        return self._vocabulary

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> KeyedGrammar:
        """A matcher for the artifact whose key stands in `grammar_spec`."""
        grammar = self._loaded(key_of(grammar_spec))
        matcher = self._matcher(grammar, self._stops(stop_token_ids))
        return KeyedGrammar(matcher, partial(self._drop_failed, grammar), MatcherUse(grammar, matcher))

    def _stops(self, stop_token_ids: Collection[int] | None) -> tuple[int, ...] | None:
        """Those of a request that may end its answer; None: the tokenizer's."""
        return tuple(sorted(set(stop_token_ids or ()) - self._read_as_text)) or None

    def _matcher(self, grammar: LoadedGrammar, stops: Sequence[int] | None) -> Matcher:
        """Raises GrammarMemoryFull: its matchers take too much."""
        effort = Effort()
        matcher = None if grammar.is_over else grammar.matcher(stops, self._max_rollback_tokens)
        if grammar.charge(*effort.spent()) or matcher is None:
            self.grammars.drop(grammar)
            raise GrammarMemoryFull(f"the matchers of grammar {grammar.key} take too much memory or time")
        return matcher

    def load_for(self, manager: StructuredOutputManager) -> None:
        """Let `manager`, which has a thread make each request's grammar, make those that need no loading itself: a request whose grammar is
        not there yet when a step is scheduled waits for the step behind that. For the others, tenants take turns."""
        masks = ReasoningMasks(self._vocabulary.vocabulary, self.vocab_size)
        in_threads, begin, create = manager._use_async_grammar_compilation, manager.grammar_init, manager._create_grammar

        def grammar_init(request: Request) -> None:
            structured = request.structured_output_request
            loaded = structured is not None and key_of(structured.structured_output_key[1]) in self.grammars
            manager._use_async_grammar_compilation = in_threads and not loaded
            begin(request)

        def create_grammar(request: Request) -> StructuredOutputGrammar:
            self._wanted.tenant = tenant_of(request)
            grammar = create(request)
            reasons = manager.reasoner_cls is not None and not request.structured_output_request.reasoning_ended
            if reasons and isinstance(grammar, KeyedGrammar):
                grammar.reasoning = masks.of(manager, request)
            return grammar

        manager.grammar_init = grammar_init
        manager._create_grammar = create_grammar
        mask_reasoning(manager)
        read_reasoning_by_prompt()
        if isinstance(pool := getattr(manager, "executor", None), ThreadPoolExecutor):
            manager.executor = GrammarLoader(pool._max_workers)

    def _loaded(self, key: str) -> LoadedGrammar:
        return self.grammars.get(key, self._channel, getattr(self._wanted, "tenant", ""))

    def _drop_failed(self, grammar: LoadedGrammar, is_slow: bool) -> None:
        self.grammars.drop(grammar)
        if is_slow:
            logger.warning("ending a request: grammar %s is too slow", grammar.key)

    def segmenter(self) -> Segmenter:
        """Takes seconds for a large vocabulary."""
        return Segmenter(self._vocabulary)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """All tokens allowed: int32 `[max_num_seqs or more, ceil(vocab_size / 32)]`."""
        rows = max(max_num_seqs, self._verified_rows)
        return torch.full((rows, (self.vocab_size + 31) // 32), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Nothing outlives the engine core."""
