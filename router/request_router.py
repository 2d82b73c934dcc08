"""The policy as a request router of Ray Serve's (written against 2.60.0: `serve/_private/request_router/request_router.py`).

Every process that holds a handle has a router of its own, on one event loop. Ray Serve calls it for every request: a router that raises
stops requests that healthy replicas could answer, so that here every failure of the policy is logged, and power of two choices take over.
"""

from __future__ import annotations

import logging
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from ray.serve._private.common import RequestMetadata
from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

from router.dispatcher import Dispatcher
from router.fleet import Fleet
from router.grouping import Dispatched
from router.parameters import Parameters
from router.rare_log import RareLog
from router.reading import CallFacts, read_call, read_report
from router.turns.progress import Routed
from router.waiting_room import WaitingRoom

logger = logging.getLogger(__name__)
RANKS = 4
"""Replicas that are asked in the order of a grammar's rank, before any other: each more would be one more copy of it."""
OTHERS = 2
"""Replicas beyond the ranks: where all of those are full, power of two choices."""
LOOKED_AT = 16
"""Replicas of which those are chosen that are thought to have room: each costs a look into Ray Serve's cache, and there may be
thousands."""


@dataclass(slots=True)
class _Ticket:
    """A request between its arrival and its sending; `release` is where its group goes, until that has been tried. `routed` hears where it
    is sent."""

    pending: PendingRequest
    request: Dispatched
    avoid: str
    release: str | None = None
    routed: Callable[[Routed], None] | None = None


class SchemaRouter(RequestRouter):
    """Requests with a `session_id`, which is the key of their grammar, go to the replica of that grammar, in groups; all others to the
    less loaded of two. Who finds it full goes to the next one in rank and then to any other.

    Keyword arguments (`request_router_kwargs`): any of `Parameters`.
    """

    dispatcher_class: type[Dispatcher] = Dispatcher
    queue_len_response_deadline_s = max(0.5, RequestRouter.queue_len_response_deadline_s)
    """Seconds that a replica has to say how full it is. Ray Serve's own 0.1 s is too little for a busy one, and passed over it would cost
    another copy of the grammar."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._failures = RareLog(logger)
        self._names = map(str, count())
        self._known: dict[str, RunningReplica] = {}
        self._tickets: dict[int, _Ticket] = {}
        self._sent: defaultdict[tuple[ReplicaID, str], list[str]] = defaultdict(list)
        self._set_policy(self.policy())

    def initialize_state(self, **kwargs: Any) -> None:
        with self._guarded():
            self._set_policy(self.policy(**kwargs))

    def policy(self, **parameters: Any) -> Dispatcher:
        return self.dispatcher_class(random.Random(), time.time, Parameters(**parameters), time.monotonic)

    def _set_policy(self, policy: Dispatcher) -> None:
        self.dispatcher = policy
        self._waiting_room = WaitingRoom(policy, lambda error: self._failures.error("grouping failed", error))
        with self._guarded():
            self._adopt()

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        super().update_replicas(replicas)
        with self._guarded():
            self._adopt()
            for name, replica in self._known.items():
                if report := read_report(name, replica.routing_stats or {}):
                    self.dispatcher.reported(report)
            self._waiting_room.look()

    def on_replica_actor_died(self, replica_id: ReplicaID) -> None:
        super().on_replica_actor_died(replica_id)
        with self._guarded():
            self._adopt()
            self._waiting_room.look()

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """Where a group goes, or else the best replica first, then any that may have room. Where all are full, Ray Serve asks again, a
        little later each time."""
        if pending_request is None:
            return [_two(candidate_replicas)]
        pending_request.routing_context.should_backoff = True
        try:
            return self._ranked(candidate_replicas, pending_request)
        except Exception as error:  # noqa: BLE001  # any replica is better than none
            self._failures.error("a request is routed without its grammar", error)
            return [_two(candidate_replicas)]

    def on_request_completed(self, replica_id: ReplicaID, internal_request_id: str) -> None:
        """Ray Serve tells it once of each request that `_choose_replica_for_request` has given a replica, also where that refused it."""
        names = self._sent.get((replica_id, internal_request_id))
        if not names:
            return
        name = names.pop()
        if not names:
            del self._sent[replica_id, internal_request_id]
        with self._guarded():
            self.dispatcher.gone(name)
            self._waiting_room.look()

    async def _choose_replica_for_request(self, pending_request: PendingRequest, *, is_retry: bool = False) -> RunningReplica:
        """Before Ray Serve's queue, and not in `choose_replicas`: it runs no more tasks than two for each replica there, and those that
        wait for their group would hold up all others."""
        ticket = self._tickets[id(pending_request.metadata)] = self._ticket(pending_request)
        began = time.monotonic() if ticket.routed is not None else 0.0
        try:
            if not ticket.avoid and not is_retry and self._known:
                with self._guarded():
                    ticket.release = await self._waiting_room.released(ticket.request)
            replica = await super()._choose_replica_for_request(pending_request, is_retry=is_retry)
        except BaseException:
            with self._guarded():
                self.dispatcher.gone(ticket.request.name)
            raise
        finally:
            del self._tickets[id(pending_request.metadata)]
        self._sent[replica.replica_id, pending_request.metadata.internal_request_id].append(ticket.request.name)
        if ticket.routed is not None:
            with self._guarded():
                name = replica.replica_id.unique_id
                ticket.routed(Routed(name, time.monotonic() - began, *self.dispatcher.fleet.passed_over(ticket.request.key, name)))
        return replica

    def _fulfill_next_pending_request(self, replica: RunningReplica, request_metadata: RequestMetadata | None = None) -> None:
        # Told here, and not when the replica has accepted it: until then others would be chosen for as if it were not there.
        with self._guarded():
            if (ticket := self._tickets.get(id(request_metadata))) is not None:
                self.dispatcher.sent(ticket.request, replica.replica_id.unique_id)
        super()._fulfill_next_pending_request(replica, request_metadata)

    def _get_pending_request_matching_internal_request_id(self, request_metadata: RequestMetadata | None = None) -> PendingRequest | None:
        # Calls that one request makes side by side share its internal id; each has metadata of its own.
        ticket = self._tickets.get(id(request_metadata))
        if ticket is not None and not ticket.pending.future.done():
            return ticket.pending
        return super()._get_pending_request_matching_internal_request_id(request_metadata)

    def _ticket(self, pending: PendingRequest) -> _Ticket:
        facts, key = CallFacts(), pending.metadata.session_id or None
        with self._guarded():
            facts = read_call(pending.args)
            if facts.progress is not None:
                charge = partial(self.dispatcher.shares.charge, facts.tenant)
                facts.progress.listen(charge)
                facts.progress.waits = True
                if facts.progress.elsewhere is not None:
                    facts.progress.elsewhere.meet(self.dispatcher)
                    charge(facts.progress.elsewhere.take(facts.tenant))
        request = Dispatched(next(self._names), key, facts.tokens, facts.prefix, facts.sequences, facts.tenant, facts.weight)
        return _Ticket(pending, request, facts.avoid, routed=facts.progress.went if facts.progress is not None else None)

    def _ranked(self, candidates: list[RunningReplica], pending: PendingRequest) -> list[list[RunningReplica]]:
        ticket = self._tickets.get(id(pending.metadata)) or self._ticket(pending)
        release, ticket.release = ticket.release, None
        if release in self._known:
            return [[self._known[release]]]
        ranked = [one for one in self.dispatcher.ranks(ticket.request, RANKS) if one != ticket.avoid]
        order = [self._known[name] for name in ranked if name in self._known]
        looked_at = random.sample(candidates, min(LOOKED_AT, len(candidates)))
        others = [one for one in looked_at if one.replica_id.unique_id not in (*ranked, ticket.avoid)]
        with_room = {one.replica_id for one in self.select_available_replicas([*order, *others])}
        others.sort(key=lambda one: one.replica_id not in with_room)
        return _ranks([*order, *others[:OTHERS]], with_room) or [_two(candidates)]

    def _adopt(self) -> None:
        self._known = {replica_id.unique_id: replica for replica_id, replica in self._replicas.items()}
        if set(self._known) != set(self.dispatcher.fleet.ids):
            self.dispatcher.adopt(Fleet(self._known))

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  # see above: a router must not raise
            self._failures.error("the router's policy failed", error)


def _ranks(order: list[RunningReplica], with_room: Set[ReplicaID]) -> list[list[RunningReplica]]:
    """Those that are thought to be full share the rank of the next one that is not: of a rank, Ray Serve takes one that has room at once,
    and asks the full ones meanwhile whether they still are."""
    ranks: list[list[RunningReplica]] = []
    full: list[RunningReplica] = []
    for replica in order:
        full.append(replica)
        if replica.replica_id in with_room:
            ranks.append(full)
            full = []
    return [*ranks, full] if full else ranks


def _two(replicas: list[RunningReplica]) -> list[RunningReplica]:
    return random.sample(replicas, min(2, len(replicas)))
