"""Which replicas keep a node: no cluster is needed to say."""

from __future__ import annotations

from deployments.commands.draining import touching

HOMES = {"a": "first", "b": "second", "c": "third"}


def test_a_replica_is_where_its_process_is() -> None:
    assert touching("first", HOMES, {}) == {"a": "first"}
    assert touching("fourth", HOMES, {}) == {}


def test_a_replica_is_where_workers_of_its_engine_are_and_leaves_by_the_node_of_its_process() -> None:
    assert touching("second", HOMES, {"a": {"first", "second"}, "b": {"second"}}) == {"a": "first", "b": "second"}


def test_a_group_without_a_replica_keeps_nobody() -> None:
    assert touching("first", {"b": "second"}, {"a": {"first"}, "b": {"second"}}) == {}
