"""One simulated replica: a continuously batching engine, reduced to what routing can change."""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

from router.simulation.mask_rows import MaskRows
from router.simulation.traffic import Request


@dataclass(frozen=True, slots=True)
class EngineModel:
    """A step takes `step_s`, `token_s` for each token that it computes, prefilled or decoded, and `row_s` for each distinct mask row. It
    prefills up to `prefill_budget` tokens of the oldest prompts; everyone else who runs, at most `seats`, decodes one token.

    Every `noise_s` its pace changes: for so long steps take a random multiple of their time, log-normal of mean 1 with `noise` the standard
    deviation of its logarithm.

    Requests of one grammar are in one of `rows_per_grammar` states, those that began together in the same one for `alike_steps`: see
    `MaskRows`. An engine keeps the `resident` grammars that it used last. One that it lacks is fetched in `fetch_s`, or, the first time
    in the whole fleet, compiled in `compile_s`; its requests wait for that, the others do not. It keeps what the last `prefixes`
    different beginnings of prompts came to, and does not compute them again.

    Figures by default: times of grammars and rows as measured (median of a cold compile, of deserializing; one row 12 µs), steps of a
    model of about 8 billion parameters on one accelerator.
    """

    step_s: float = 0.010
    token_s: float = 20e-6
    row_s: float = 12e-6
    prefill_budget: int = 4096
    seats: int = 128
    rows_per_grammar: int = 16
    alike_steps: int = 0
    resident: int = 256
    prefixes: int = 256
    fetch_s: float = 0.009
    compile_s: float = 0.033
    noise: float = 0.0
    noise_s: float = 1.0

    def slower(self, times: float) -> EngineModel:
        """Its steps take so many times as long."""
        return replace(self, step_s=self.step_s * times, token_s=self.token_s * times, row_s=self.row_s * times)


@dataclass(frozen=True, slots=True)
class Answered:
    """A request got its first token, or its last one (`done`), at `at_s`."""

    request: Request
    at_s: float
    done: bool


@dataclass(slots=True)
class EngineCounts:
    """Since the start: steps, of those that decode the mask rows, the seconds they took; requests and grammars admitted, each grammar once
    a step; grammars that had to be loaded; requests whose prompts had a beginning in common with others, and those that found it."""

    steps: int = 0
    decode_steps: int = 0
    rows: float = 0.0
    busy_s: float = 0.0
    admitted: int = 0
    admitted_groups: int = 0
    loads: int = 0
    prefixed: int = 0
    prefix_hits: int = 0


class Engine:
    """Equal steps are played as one stretch. The world says when time has come (`at_s` of `next_at`), and asks what has happened."""

    def __init__(self, model: EngineModel, random: Random) -> None:
        self._model = model
        self._random = random
        self._resident: OrderedDict[str, None] = OrderedDict()
        self._prefixes: OrderedDict[str, None] = OrderedDict()
        self._loading: dict[str, list[Request]] = {}
        self._queue: deque[Request] = deque()
        self._prefilling: deque[tuple[Request, int]] = deque()
        self._decoding: list[tuple[int, int, Request]] = []
        self._rows = MaskRows(model.rows_per_grammar, model.alike_steps)
        self._order = 0
        self._began_s = self._step_s = 0.0
        self._pace, self._pace_until_s = 1.0, 0.0 if model.noise else math.inf
        self._prefills = 0
        self._stretch = 0
        self.hangs = False
        self.counts = EngineCounts()
        self._told = (0, 0.0)

    @property
    def requests(self) -> list[Request]:
        """All that are here, in whatever state."""
        waiting = [request for requests in self._loading.values() for request in requests]
        return [*waiting, *self._queue, *(request for request, _ in self._prefilling), *(request for _, _, request in self._decoding)]

    @property
    def running(self) -> int:
        return len(self._prefilling) + len(self._decoding)

    @property
    def waiting(self) -> int:
        return len(self._queue) + sum(map(len, self._loading.values()))

    @property
    def prefill_tokens(self) -> int:
        """Outstanding ones."""
        waiting = sum(request.prompt_tokens for requests in (*self._loading.values(), self._queue) for request in requests)
        return waiting + sum(left for _, left in self._prefilling)

    @property
    def resident(self) -> int:
        return len(self._resident)

    @property
    def next_at(self) -> float | None:
        """When the stretch ends that runs now."""
        return self._began_s + self._stretch * self._step_s if self._stretch else None

    def hang(self) -> None:
        """From now on it takes requests, and answers none."""
        self.hangs, self._stretch = True, 0

    def arrive(self, request: Request, now: float) -> bool:
        """True when its grammar has to be loaded, and nobody does that yet: the world then calls `loaded` in time."""
        key = request.key
        if key is None or key in self._resident:
            if key is not None:
                self._resident.move_to_end(key)
            self._enqueue([request], now)
            return False
        first = key not in self._loading
        self._loading.setdefault(key, []).append(request)
        self.counts.loads += first
        return first

    def loaded(self, key: str, now: float) -> None:
        self._resident[key] = None
        while len(self._resident) > self._model.resident:
            self._resident.popitem(last=False)
        self._enqueue(self._loading.pop(key), now)

    def mean_step_ms(self) -> float:
        """Of the steps since it was asked last; 0: there was none."""
        (steps, busy_s), self._told = self._told, (self.counts.steps, self.counts.busy_s)
        return (self.counts.busy_s - busy_s) / (self.counts.steps - steps) * 1000 if self.counts.steps > steps else 0.0

    def play(self, now: float) -> list[Answered]:
        """The stretch ends; the next one begins."""
        answered = self._end_of_stretch(now)
        self._admit()
        self._begin(now)
        return answered

    def _enqueue(self, requests: Iterable[Request], now: float) -> None:
        self._queue.extend(requests)
        if self.hangs:
            return
        if not self._stretch:
            self._admit()
            self._begin(now)
        elif self._stretch > 1 and self.running < self._model.seats:
            # They are admitted at the end of the step that runs now.
            self._stretch = min(self._stretch, max(1, math.ceil((now - self._began_s) / self._step_s)))

    def _end_of_stretch(self, now: float) -> list[Answered]:
        counts, stretch = self.counts, self._stretch
        counts.steps += stretch
        counts.busy_s += stretch * self._step_s
        if self._decoding:
            counts.decode_steps += stretch
            counts.rows += stretch * self._rows.rows
        self._rows.part(counts.steps)
        answered: list[Answered] = []
        while self._decoding and self._decoding[0][0] <= counts.steps:
            end, _, request = heapq.heappop(self._decoding)
            if request.key is not None:
                self._rows.end(request.key, end - request.output_tokens + 1)
            answered.append(Answered(request, now, done=True))
        answered += self._prefilled(self._prefills, now)
        return answered

    def _prefilled(self, tokens: int, now: float) -> list[Answered]:
        answered: list[Answered] = []
        while self._prefilling and tokens > 0:
            request, left = self._prefilling.popleft()
            if left > tokens:
                self._prefilling.appendleft((request, left - tokens))
                break
            tokens -= left
            answered.append(Answered(request, now, done=False))
            if request.output_tokens == 1:
                answered.append(Answered(request, now, done=True))
            else:
                self._order += 1
                heapq.heappush(self._decoding, (self.counts.steps + request.output_tokens - 1, self._order, request))
                if request.key is not None:
                    self._rows.begin(request.key, self.counts.steps)
        return answered

    def _admit(self) -> None:
        keys = set()
        while self._queue and self.running < self._model.seats:
            request = self._queue.popleft()
            self._prefilling.append((request, self._to_prefill(request)))
            if request.key is not None:
                self.counts.admitted += 1
                keys.add(request.key)
        self.counts.admitted_groups += len(keys)

    def _to_prefill(self, request: Request) -> int:
        if not request.prefix:
            return request.prompt_tokens
        known = request.prefix in self._prefixes
        self.counts.prefixed += 1
        self.counts.prefix_hits += known
        self._prefixes[request.prefix] = None
        self._prefixes.move_to_end(request.prefix)
        if len(self._prefixes) > self._model.prefixes:
            self._prefixes.popitem(last=False)
        # The last token is computed in any case.
        return max(1, request.prompt_tokens - request.prefix_tokens * known)

    def _begin(self, now: float) -> None:
        model, outstanding = self._model, sum(left for _, left in self._prefilling)
        self._prefills = min(model.prefill_budget, outstanding)
        tokens = self._prefills + len(self._decoding)
        self._began_s, self._stretch, self._step_s = now, 0, 0.0
        if tokens:
            self._step_s = (model.step_s + model.token_s * tokens + model.row_s * self._rows.rows) * self._pace_at(now)
            self._stretch = 1 if self._prefills else self._equal_steps(now)

    def _equal_steps(self, now: float) -> int:
        """Until somebody ends, or parts from others, or the pace changes."""
        steps = self._decoding[0][0] - self.counts.steps
        if (parting := self._rows.parting) is not None:
            steps = min(steps, parting - self.counts.steps)
        if self._pace_until_s < math.inf:
            steps = min(steps, math.ceil((self._pace_until_s - now) / self._step_s))
        return max(1, steps)

    def _pace_at(self, now: float) -> float:
        if now >= self._pace_until_s:
            model = self._model
            self._pace = self._random.lognormvariate(-(model.noise**2) / 2, model.noise)
            self._pace_until_s = now + model.noise_s
        return self._pace
