"""An engine as far as masks are concerned: requests that walk through their grammars at random, and compare the masks that come with those
that they fill themselves."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from random import Random
from threading import Event

import numpy as np
import numpy.typing as npt
import torch

from grammar_service.backends import CompiledGrammar, Matcher
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.masks.client import Asked, MaskClient
from model_service.masks.frames.frame import decode, free_row
from model_service.masks.messages import VERSION, Hello
from model_service.masks.ring.ring import FrameRef, RingReader
from model_service.shared_memory import MemoryAddress
from tests.waiting import PATIENCE_S, TICK_S

Ints = npt.NDArray[np.int32]


def hello(tokenizer: GrammarTokenizer, channel: str, most_rows: int = 256) -> Hello:
    return Hello(VERSION, "walking", tokenizer.vocab_size, tokenizer.fingerprint, channel, most_rows)


def expected_rows(matcher: Matcher, drafts: Sequence[int], vocab_size: int) -> Ints:
    """The masks of one request, one by one; the matcher is as before."""
    rows = np.tile(free_row(vocab_size), (len(drafts) + 1, 1))
    taken, repeated = 0, False
    for position, token in enumerate([*drafts, -1]):
        if repeated:
            rows[position] = rows[position - 1]
            continue
        if matcher.is_terminated():
            break
        tensor = torch.zeros(1, rows.shape[1], dtype=torch.int32)
        matcher.fill(tensor, 0)
        rows[position] = tensor.numpy()[0]
        if token < 0:
            break
        repeated = not matcher.accept(token)
        taken += not repeated
    matcher.rollback(taken)
    return rows


def tokens_of(row: Ints) -> list[int]:
    return [int(token) for token in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))]


@dataclass
class Walk:
    key: str
    matcher: Matcher
    tokens: list[int] = field(default_factory=list)

    def take(self, token: int) -> None:
        assert self.matcher.accept(token)
        self.tokens.append(token)


class WalkingEngine:
    """`grammars` by key, as they are offered to the broadcaster."""

    def __init__(self, client: MaskClient, grammars: Mapping[str, CompiledGrammar], vocab_size: int, seed: int = 0) -> None:
        self.client = client
        self.walks: dict[str, Walk] = {}
        self._grammars = grammars
        self._vocab_size = vocab_size
        self._chance = Random(seed)

    def begin(self, request_id: str, key: str, stops: tuple[int, ...] | None = None) -> None:
        walk = self.walks[request_id] = Walk(key, self._grammars[key].matcher(stops, 64))
        self.client.begin(request_id, key, stops, lambda: walk.tokens)

    def end(self, request_id: str) -> None:
        del self.walks[request_id]
        self.client.end(request_id)

    def ask(self, drafts: int = 0) -> tuple[Asked | None, dict[str, list[int]]]:
        rows = {request_id: self._drafts(walk, drafts) for request_id, walk in self.walks.items()}
        return self.client.ask(list(rows.items())), rows

    def masked(self, drafts: int = 0) -> frozenset[str]:
        """Which requests have their masks from the broadcaster."""
        asked, rows = self.ask(drafts)
        reference = self.client.wait(asked) if asked is not None else None
        if asked is None or reference is None:
            return frozenset()
        self.compare(asked, reference, rows)
        return frozenset(asked.request_ids)

    def step(self, drafts: int = 0) -> frozenset[str]:
        """The same; then all take a token that their grammars allow, unless they are over."""
        masked = self.masked(drafts)
        for request_id, walk in self.walks.items():
            if not walk.matcher.is_terminated():
                walk.take(self._chance.choice(tokens_of(expected_rows(walk.matcher, (), self._vocab_size)[0])))
                self.client.accept(request_id, walk.tokens[-1:])
        return masked

    def compare(self, asked: Asked, reference: FrameRef, rows: Mapping[str, Sequence[int]]) -> None:
        frame = decode(_read(reference))
        logits = torch.zeros(frame.header.logits, frame.header.vocab_size)
        frame.apply(logits)
        expected = [expected_rows(self.walks[request_id].matcher, rows[request_id], self._vocab_size) for request_id in asked.request_ids]
        assert [len(own) for own in expected] == list(asked.counts)
        assert np.array_equal(logits.numpy() == 0, _allowed(np.concatenate(expected), self._vocab_size))

    def await_masks(self, drafts: int = 0) -> None:
        """Until there are masks of all; nobody takes a token."""
        until = time.monotonic() + PATIENCE_S
        while self.masked(drafts) != self.walks.keys():
            left = until - time.monotonic()
            assert left > 0, self.client.link
            self._await_message(left)

    @property
    def ring(self) -> MemoryAddress | None:
        """That of the broadcaster, while it is there."""
        link = self.client.link
        return link.ring.address if link is not None and link.ring is not None else None

    def _await_message(self, seconds: float) -> None:
        """Unless all that could be waited for has been said."""
        if self.client.link is None:
            # Nothing tells that somebody listens at last.
            Event().wait(TICK_S)
        elif len(self.client._requests.ready([(request_id, ()) for request_id in self.walks])) < len(self.walks):
            self.client.link.poll(seconds)

    def _drafts(self, walk: Walk, most: int) -> list[int]:
        """Mostly what the grammar allows, at times what it forbids, or padding."""
        drafts: list[int] = []
        taken = 0
        for _ in range(self._chance.randrange(most + 1)):
            allowed = tokens_of(expected_rows(walk.matcher, (), self._vocab_size)[0])
            wild = [-1, self._chance.randrange(self._vocab_size)]
            drafts.append(self._chance.choice(wild if self._chance.random() < 0.2 else allowed))
            taken += drafts[-1] >= 0 and taken == len(drafts) - 1 and walk.matcher.accept(drafts[-1])
        walk.matcher.rollback(taken)
        return drafts


def _allowed(rows: Ints, vocab_size: int) -> npt.NDArray[np.bool_]:
    return np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little", count=vocab_size).astype(np.bool_)


def _read(reference: FrameRef) -> bytes:
    with closing(RingReader(reference.address)) as reader:
        return reader.read(reference)
