"""What is written when a single node's store is taken into a cluster's, and what keeps it from that."""

from __future__ import annotations

import pytest

from postroad.cluster import keys
from postroad.cluster.importing import COMMIT_BYTES, COMMIT_KEYS, plan
from postroad.cluster.store import OPERATIONS_MAX, Compare, Delete, Put, Snapshot, StoreEntry
from postroad.errors import ConfigurationError
from tests.cluster.memory_store import MemoryStore

EMPTY = Snapshot([], 1)


def snapshot(values: dict[str, bytes]) -> Snapshot:
    return Snapshot([StoreEntry(key, values[key], 7) for key in sorted(values)], 9)


def a_store(topics: int = 200, size: int = 10) -> dict[str, bytes]:
    values = {keys.CLUSTER: b"one", keys.LEVEL_KEY: b"2", keys.directory_key(1): b"d"}
    for number in range(topics):
        values[f"topics/{number}"] = bytes(size)
        values[f"partitions/{number}/0000"] = bytes(size)
    return values


def carried_out(source: Snapshot, store: MemoryStore, commits: int | None = None) -> None:
    for compares, operations in plan(source, store.snapshot())[:commits]:
        assert store.commit(compares, operations)


@pytest.mark.parametrize("size", [10, COMMIT_BYTES // 2 + 1])
def test_all_keys_are_there_in_the_end_but_those_of_leases(size: int) -> None:
    wanted = a_store(5 if size > 10 else 200, size)
    source = snapshot({**wanted, keys.node_key(1): b"n", keys.CONTROLLER: b"c"})
    store = MemoryStore()
    carried_out(source, store)
    assert {entry.key: entry.value for entry in store.snapshot().entries} == wanted
    assert plan(source, store.snapshot()) == []


def test_no_commit_is_larger_than_a_store_takes_and_the_cluster_comes_last() -> None:
    planned = plan(snapshot(a_store()), EMPTY)
    assert len(planned) > 3
    for compares, operations in planned:
        assert len(operations) <= COMMIT_KEYS
        assert len(compares) + len(operations) <= OPERATIONS_MAX
        assert not any(isinstance(operation, Delete) for operation in operations)
    assert planned[-1] == ([Compare(keys.CLUSTER, 0)], [Put(keys.CLUSTER, b"one")])
    assert all(Compare(keys.CLUSTER, 0) in compares for compares, _ in planned)


def test_an_import_that_was_interrupted_is_gone_on_with() -> None:
    source, store = snapshot(a_store()), MemoryStore()
    carried_out(source, store, commits=2)
    assert keys.CLUSTER not in {entry.key for entry in store.snapshot().entries}
    carried_out(source, store)
    assert {entry.key: entry.value for entry in store.snapshot().entries} == a_store()


@pytest.mark.parametrize(
    "there",
    [{keys.CLUSTER: b"another"}, {"topics/0": b"other"}, {keys.node_key(1): b"n"}, {"topics/new": b"t"}],
)
def test_a_store_that_holds_something_else_is_refused(there: dict[str, bytes]) -> None:
    with pytest.raises(ConfigurationError, match="in use"):
        plan(snapshot(a_store()), snapshot(there))


def test_an_empty_store_is_not_imported() -> None:
    with pytest.raises(ConfigurationError, match="nothing to import"):
        plan(snapshot({keys.LEVEL_KEY: b"2"}), EMPTY)
