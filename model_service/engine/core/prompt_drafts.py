"""Drafts of what is likely to follow (vLLM 0.32: `v1/core/sched/scheduler.py`, `v1/sample/rejection_sampler.py`).

An answer that is extracted from a text repeats parts of it, and members of few values are often what they were. Where the grammar leaves
the choice, the value so far is looked up in the prompt and in the answer, or a value that begins in the tenant's last answers of this
grammar; what follows there is verified by the next forward, several tokens at once, and what the grammar decides is carried on with. vLLM's
rejection sampler decides, so that the distribution of answers stays. A draft is made where it is likelier to be accepted than what it costs
is worth.
"""

from __future__ import annotations

import re
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from vllm.v1.request import Request, RequestStatus

from grammar_service.backends import Matcher
from grammar_service.backends.mask_budget import SearchBudget
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.segments import Segmenter
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.core_figures import DRAFT_SOURCES
from model_service.engine.core.backend import KeyedGrammar
from model_service.engine.core.grammar_loading import tenant_of
from model_service.engine.key_constraint import key_of
from model_service.jump_forward.acceptance import EXPECTED, Acceptance, Kind
from model_service.jump_forward.prompt_lookup import LONGEST_VALUE, SearchedText, continuation, first_words
from model_service.jump_forward.recent_values import RecentValues
from model_service.tenants.step_cost import StepCost

MOST_PROMPT = 1 << 15
"""Tokens, the last ones of a prompt. Their text is made in 8 ms, while all requests wait."""
UNKNOWN = 0.02
"""What a draft costs of a step that has none, until that is known: two cores take so much for a model of 135 million parameters."""
MARGIN = 1.5
"""How many times its cost a draft must be expected to save. A step's cost is taken for linear, and most tokens that it was learnt from come
hundreds at a time: a few more than there are rows take a fifth more each (2.45 ms for 2.05, 32 rows on two cores). With 1.25, 32 clients'
extractions had 13 forwards in place of 21 and were 4 % slower; with 1.5 they have 19, and are as fast as without drafts."""
LONGEST_ANSWER = 2048
"""Tokens of an answer whose values are remembered."""
FORCED, RECENT, WORDS, PROMPT, ANSWER, END = DRAFT_SOURCES
_BYTES_PER_TOKEN, _LONGEST_TOKEN = 6, 16
_AHEAD_OF_VALUES = b":,[{ \n"
_AFTER_VALUES = b",", b"}", b"]"
_AFTER_STRINGS = b'",', b'"}', b'"]', b'"'
_NAME = re.compile(rb'"((?:[^"\\]|\\.){1,64})":')
_IN_STRING = re.compile(rb'":\s*"[^"]*$')
_BEGINNING = re.compile(rb'"((?:[^"\\]|\\.){1,64})":\s*("?)$')


@dataclass(slots=True)
class _RequestDrafts:
    """Of a request. `answer` are its first `answered` tokens. `parts` are its last drafts in turn: where they come from, their kind, and
    how many. `budget`: of the time in which they are looked for, by how many were accepted."""

    prompt: SearchedText | None = None
    wants_prompt: bool = False
    answer: SearchedText = field(default_factory=SearchedText)
    answered: int = 0
    parts: list[tuple[str, Kind, int]] = field(default_factory=list)
    budget: SearchBudget = field(default_factory=SearchBudget)


@dataclass(frozen=True, slots=True)
class _Price:
    """What a draft costs, as shares of what a forward costs each of its requests: `token` for computing one more token, `draft` for its
    logits and its mask. An accepted draft saves the request a forward, which is 1."""

    token: float
    draft: float

    @property
    def least(self) -> float:
        """The chance from which on a draft pays."""
        return min(1.0, MARGIN * (self.token + self.draft))

    def pays_forced(self, tokens: int, chance: float) -> bool:
        """Whether forced text behind drafts does, which are all accepted with that chance: then it saves one forward, and its tokens were
        to be computed anyway."""
        return chance * (1 + self.token * tokens) >= MARGIN * (self.token + self.draft) * tokens


@dataclass(slots=True)
class _Proposal:
    """For one forward of a request. `chance`: that all drafts are accepted."""

    request: Request
    state: _RequestDrafts
    matcher: Matcher
    room: int
    owner: Hashable
    tokens: list[int] = field(default_factory=list)
    chance: float = 1.0

    @property
    def left(self) -> int:
        return self.room - len(self.tokens)

    @property
    def last_tokens(self) -> list[int]:
        return [*self.request.output_token_ids[-LONGEST_VALUE:], *self.tokens]


class PromptDrafts:
    """For one scheduler, whose steps cost what `cost` has learnt. `most`: of a request. `counts`: how many were verified and accepted, by
    where they come from (`DRAFT_SOURCES`)."""

    def __init__(self, tokenizer: GrammarTokenizer, segmenter: Segmenter, cost: StepCost, most: int) -> None:
        self._vocabulary = tokenizer.vocabulary
        self._segmenter = segmenter
        self._cost = cost
        self._most = most
        self._acceptance = Acceptance()
        self._recent = RecentValues()
        self._requests: dict[str, _RequestDrafts] = {}
        self.counts = {source: [0, 0] for source in DRAFT_SOURCES}

    def find(self, request: Request, running: int) -> list[int]:
        """For the request's next forward, in which so many requests take part; its grammar holds for its next token."""
        grammar = request.structured_output_request.grammar
        assert isinstance(grammar, KeyedGrammar)
        if grammar.is_canonical or not _can_verify(request):
            return []
        state, price = self._requests.setdefault(request.request_id, _RequestDrafts()), self._price(running)
        if grammar.must_end or state.budget.is_spent or price.least >= EXPECTED:
            return []
        began = time.thread_time()
        found = self._propose(request, state, grammar, price)
        state.budget.spend(time.thread_time() - began, 0)
        return found

    def record(self, request_id: str, drafted: int, accepted: int) -> None:
        """So many drafts of the request's last ones were verified and accepted."""
        if (state := self._requests.get(request_id)) is None:  # aborted meanwhile
            return
        state.budget.spend(0.0, accepted)
        for source, kind, count in state.parts:
            tried = min(count, drafted)
            if tried and accepted >= 0:
                self._acceptance.record(kind, min(tried, accepted), accepted < tried)
            counts = self.counts[source]
            counts[0], counts[1] = counts[0] + tried, counts[1] + max(0, min(tried, accepted))
            drafted, accepted = drafted - tried, accepted - tried

    def ended(self, request: Request) -> None:
        self._requests.pop(request.request_id, None)
        structured = request.structured_output_request
        if structured is not None and request.status == RequestStatus.FINISHED_STOPPED and request.num_output_tokens <= LONGEST_ANSWER:
            self._recent.add(_owner(request), b"".join(self._vocabulary[token] for token in request.output_token_ids))

    def _price(self, rows: int) -> _Price:
        """In a step of so many."""
        if not self._cost.is_known:
            return _Price(UNKNOWN * rows, 0.0)
        share = max(self._cost.of(rows, 0), 1.0) / rows
        return _Price(self._cost.token / share, self._cost.draft / share)

    def _propose(self, request: Request, state: _RequestDrafts, grammar: KeyedGrammar, price: _Price) -> list[int]:
        room = min(self._most, request.max_tokens - request.num_output_tokens - 1)
        for _ in range(2):
            state.parts, state.wants_prompt, found = [], False, list[int]()
            # The prompt's text is neither time nor memory that the grammar takes.
            with grammar.watched(counts_time=False):
                found = self._extended(_Proposal(request, state, grammar.matcher, room, _owner(request)), price)
            if not state.wants_prompt:
                break
            state.prompt = SearchedText.of_prompt(self._text((request.prompt_token_ids or ())[-MOST_PROMPT:]))
        return found

    def _extended(self, proposal: _Proposal, price: _Price) -> list[int]:
        while proposal.left > 0 and proposal.chance >= price.least and self._extend(proposal, price):
            pass
        proposal.matcher.rollback(len(proposal.tokens))
        return proposal.tokens

    def _extend(self, proposal: _Proposal, price: _Price) -> bool:
        """Whether there are more."""
        if forced := proposal.matcher.forced_bytes():
            if len(forced) > proposal.left * _LONGEST_TOKEN:
                return False
            return self._extend_by_forced(proposal, price, forced)
        for source, place, texts in self._candidates(proposal, self._text(proposal.last_tokens)):
            kind = (*place, source)
            most = min(proposal.left, self._acceptance.worthwhile(kind, proposal.chance, price.least))
            if not most and not self._acceptance.is_retry_due(kind):
                return False
            before = proposal.last_tokens
            if taken := self._append(proposal, source, kind, (self._segmenter.continued(before, text)[: max(most, 1)] for text in texts)):
                proposal.chance *= self._acceptance.likely(kind) ** taken
                return True
        return False

    def _extend_by_forced(self, proposal: _Proposal, price: _Price, forced: bytes) -> bool:
        """With no drafts ahead, the forced text has been appended but for what a longer token could still swallow, as a blank nearly always
        is."""
        kind = proposal.owner, forced, (FORCED, len(proposal.tokens) > 0)
        tokens = self._segmenter.continued(proposal.last_tokens, forced)
        chance = proposal.chance * self._acceptance.likely(kind)
        if len(tokens) > proposal.left or not (price.pays_forced(len(tokens), chance) or self._acceptance.is_retry_due(kind)):
            return False
        taken = self._append(proposal, FORCED, kind, [tokens])
        proposal.chance *= self._acceptance.likely(kind) ** taken
        return taken > 0

    def _candidates(self, proposal: _Proposal, text: bytes) -> Iterator[tuple[str, tuple[Hashable, str], Sequence[bytes]]]:
        """Where each comes from, whose answers and which member it is for, the likeliest one first, in words of which the first are tried
        that the grammar allows."""
        if (beginning := _BEGINNING.search(text)) is not None:
            name = _read(beginning[1])
            value, quote = self._recent.likely(proposal.owner, name), beginning[2]
            if value and value.startswith(quote):
                text, ends = (value[len(quote) : -1], _AFTER_STRINGS) if value.endswith(b'"') else (value, _AFTER_VALUES)
                yield RECENT, (proposal.owner, name), [text + end for end in ends]
            return
        if text.endswith(b'"') or not (value := text[text.rfind(b'"') + 1 :].lstrip(_AHEAD_OF_VALUES)):
            return
        names = _NAME.findall(text)
        place = proposal.owner, _read(names[-1] if names else b"")
        ends = _AFTER_STRINGS if _IN_STRING.search(text) else _AFTER_VALUES
        if (prompt := proposal.state.prompt) is None:
            proposal.state.wants_prompt = True
            return
        texts = {PROMPT: prompt, ANSWER: self._answer(proposal)}
        found, where = continuation(texts, value, proposal.left * _BYTES_PER_TOKEN, b"\\" in text)
        whole = first_words(value + found, self._recent.words(*place)) if ends is _AFTER_STRINGS else None
        if whole is not None and len(whole) >= len(value):
            yield WORDS, place, [whole[len(value) :] + end for end in ends]
        elif found:
            yield where, place, (found,)
        yield END, place, ends

    def _answer(self, proposal: _Proposal) -> SearchedText:
        """So far."""
        state, tokens = proposal.state, proposal.request.output_token_ids
        state.answer.add(self._text(tokens[state.answered :]))
        state.answered = len(tokens)
        return state.answer

    def _append(self, proposal: _Proposal, source: str, kind: Kind, proposed: Iterable[Sequence[int]]) -> int:
        """How many tokens the matcher has taken, of the first that it takes all of, or else of the first that it takes some of."""
        best: Sequence[int] = ()
        for tokens in proposed:
            taken = accepted_prefix(proposal.matcher, tokens)
            best = best or tokens[:taken]
            if taken == len(tokens) > 0:
                best = tokens
                break
        for token in best:
            proposal.matcher.accept(token)
        proposal.tokens += best
        if best:
            proposal.state.parts.append((source, kind, len(best)))
        return len(best)

    def _text(self, tokens: Sequence[int]) -> bytes:
        """Special tokens end values."""
        known = len(self._vocabulary)
        return b"".join((self._vocabulary[token] if token < known else b"") or b'"' for token in tokens)


def _read(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _owner(request: Request) -> Hashable:
    """Of whose answers others may learn from each other: those of a tenant, and of a salt, by one grammar."""
    return tenant_of(request), request.cache_salt, key_of(request.structured_output_request.structured_output_key[1])


def _can_verify(request: Request) -> bool:
    """Whether answers are as without drafts: vLLM's rejection sampler knows neither `min_p` nor `logit_bias`, and what a seed draws depends
    on how many drafts there are."""
    params = request.sampling_params
    is_seeded = params.seed is not None and params.temperature > 0
    return not (params.min_p or params.logit_bias or is_seeded)
