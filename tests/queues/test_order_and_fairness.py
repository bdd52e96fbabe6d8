"""Order by key and by partition, and fairness between tenants."""

from __future__ import annotations

from postroad.queues.entry import QueueEntry
from postroad.queues.holdings import Holdings
from postroad.queues.settings import Backoff, Order
from tests.queues.shell import ACCEPT, REJECT, RELEASE, Shell


def keyed(*keys: str | None) -> list[QueueEntry]:
    return [QueueEntry(at, at, None if key is None else key.encode()) for at, key in enumerate(keys)]


def of_tenants(*tenants: str) -> list[QueueEntry]:
    return [QueueEntry(at, at, None, tenant.encode()) for at, tenant in enumerate(tenants)]


def test_next_of_a_key_goes_out_only_when_the_one_before_is_accepted() -> None:
    shell = Shell(order=Order.KEY)
    shell.send(*keyed("a", "a", "b", "a"))
    assert shell.acquire() == [(0, 0), (2, 2)]
    assert shell.acquire() == []
    assert shell.partition.waiting == 2
    shell.acknowledge(ACCEPT, 0)
    assert shell.acquire() == [(1, 1)]
    shell.acknowledge(REJECT, 1)
    assert shell.acquire() == [(3, 3)]


def test_released_record_stays_first_of_its_key_while_it_backs_off() -> None:
    shell = Shell(order=Order.KEY, backoff=Backoff(100))
    shell.send(*keyed("a", "a", "b"))
    shell.acquire(count=1)
    shell.acknowledge(RELEASE, 0)
    assert shell.acquire() == [(2, 2)]
    shell.wait(100)
    assert shell.acquire() == [(0, 0)]


def test_delayed_record_holds_up_its_key_only() -> None:
    shell = Shell(order=Order.KEY)
    later = shell.now.wall_ms + 100
    shell.send(QueueEntry(0, 0, b"a", deliver_at_ms=later), QueueEntry(1, 1, b"a"), QueueEntry(2, 2, b"b"))
    assert shell.acquire() == [(2, 2)]
    shell.wait(100)
    assert shell.acquire() == [(0, 0)]


def test_records_without_a_key_wait_for_nobody() -> None:
    shell = Shell(order=Order.KEY)
    shell.send(*keyed(None, "a", None, "a", None))
    assert shell.acquire() == [(0, 2), (4, 4)]


def test_next_of_a_key_waits_until_the_end_of_the_one_before_is_on_the_disk() -> None:
    shell = Shell(order=Order.KEY)
    shell.send(*keyed("a", "a"))
    shell.acquire()
    settlement = shell.partition.acknowledge("anna", [(0, 0, (ACCEPT,))], shell.now)  # type: ignore[list-item]
    assert shell.acquire() == []
    shell.settle(settlement)
    assert shell.acquire() == [(1, 1)]


def test_key_order_holds_over_a_crash() -> None:
    entries = keyed("a", "a", "a")
    shell = Shell(order=Order.KEY)
    shell.send(*entries)
    shell.acquire()
    shell.acknowledge(ACCEPT, 0)
    shell.acquire()
    shell.crash(*entries)
    assert shell.acquire() == [(1, 1)]


def test_with_partition_order_one_record_is_in_flight_at_a_time() -> None:
    shell = Shell(order=Order.PARTITION)
    shell.send(QueueEntry(0, 9_999))
    for offset in range(3):
        assert shell.acquire() == [(offset, offset)]
        assert shell.acquire("ben") == []
        shell.acknowledge(ACCEPT, offset)


def test_subscription_that_starts_to_keep_order_keeps_it_for_what_is_in_flight() -> None:
    shell = Shell()
    entries = keyed("a", "a", "a", "b")
    shell.send(*entries)
    shell.acquire(count=2)
    shell.partition.change_settings(shell.settings._replace(order=Order.KEY))
    shell.send(*entries)
    assert shell.acquire() == [(3, 3)]
    shell.acknowledge(ACCEPT, 1)
    assert shell.acquire() == []
    shell.acknowledge(ACCEPT, 0)
    assert shell.acquire() == [(2, 2)]


def test_window_of_waiting_records_is_bounded() -> None:
    shell = Shell(order=Order.KEY, waiting_max=40)
    shell.send(*keyed(*["a"] * 50))
    assert shell.partition.wants_more(shell.now)  # neighbours of a key are one entry
    shell.send(*(QueueEntry(at, at, b"ab"[at % 2 : at % 2 + 1]) for at in range(50, 90)))
    assert not shell.partition.wants_more(shell.now)


def test_other_keys_go_on_however_many_records_wait_behind_the_head_of_one() -> None:
    shell = Shell(order=Order.KEY)
    partition, now = shell.partition, shell.now
    shell.send(QueueEntry(0, 0, b"hot"))
    assert shell.acquire("slow") == [(0, 0)]
    for first in range(0, 300_000, 20_000):
        apart = range(first + 1, first + 20_000, 2)  # neighbours would count as one
        partition.extend(first + 20_000, [QueueEntry(at, at, b"hot") for at in apart], now)
        assert partition.wants_more(now)
    assert partition.waiting == 150_000
    partition.extend(300_001, [QueueEntry(300_000, 300_000, b"other")], now)
    assert [each[:2] for each in partition.acquire("anna", 10, now)] == [(300_000, 300_000)]


def test_quiet_tenant_is_served_before_the_noisy_one_goes_on() -> None:
    shell = Shell(fair=True)
    shell.send(QueueEntry(0, 999, None, b"noisy"), QueueEntry(1000, 1001, None, b"quiet"))
    assert shell.acquire(count=4) == [(0, 1), (1000, 1001)]
    assert shell.holdings.by_tenant == {b"noisy": 2, b"quiet": 2}


def test_tenant_with_fewer_in_flight_is_served_first() -> None:
    shell = Shell(fair=True)
    shell.send(*of_tenants("a", "a", "a", "b", "b", "b"))
    assert shell.acquire(count=2) == [(0, 0), (3, 3)]
    shell.acknowledge(ACCEPT, 3)
    assert shell.acquire(count=1) == [(4, 4)]


def test_among_equals_the_tenant_served_longest_ago_is_next() -> None:
    shell = Shell(fair=True)
    shell.send(*of_tenants("a", "b", "c", "a", "b", "c"))
    order = []
    for _ in range(6):
        ((first, _),) = shell.acquire(count=1)
        shell.acknowledge(ACCEPT, first)
        order.append(first)
    assert order == [0, 1, 2, 3, 4, 5]


def test_tenant_that_always_has_only_one_record_does_not_starve_the_others() -> None:
    shell = Shell(fair=True)
    shell.send(QueueEntry(0, 99, None, b"steady"))
    served = [shell.acquire(count=1)[0][0]]
    shell.acknowledge(ACCEPT, served[-1])
    for _ in range(6):
        if served[-1] >= 100 or len(served) == 1:
            shell.send(QueueEntry(shell.partition.frontier, shell.partition.frontier, None, b"drip"))
        served.append(shell.acquire(count=1)[0][0])
        shell.acknowledge(ACCEPT, served[-1])
    assert served == [0, 100, 1, 101, 2, 102, 3]


def test_fairness_counts_what_other_partitions_have_in_flight() -> None:
    holdings = Holdings()
    one, other = Shell(holdings, fair=True), Shell(holdings, fair=True)
    one.send(QueueEntry(0, 4, None, b"a"))
    one.acquire(count=5)
    other.send(*of_tenants("a", "b", "b", "b"))
    assert other.acquire(count=3) == [(1, 3)]
    one.acknowledge(ACCEPT, 0, 4)
    other.send(QueueEntry(4, 9, None, b"b"))
    assert other.acquire(count=1) == [(0, 0)]


def test_fairness_and_key_order_hold_together() -> None:
    shell = Shell(fair=True, order=Order.KEY)
    shell.send(
        QueueEntry(0, 0, b"k", b"a"),
        QueueEntry(1, 1, b"k", b"a"),
        QueueEntry(2, 2, b"l", b"a"),
        QueueEntry(3, 3, b"m", b"b"),
    )
    assert shell.acquire(count=2) == [(0, 0), (3, 3)]
    assert shell.acquire() == [(2, 2)]
    shell.acknowledge(ACCEPT, 0)
    assert shell.acquire() == [(1, 1)]


def test_fair_subscription_looks_behind_a_noisy_tenant() -> None:
    shell = Shell(fair=True, fair_ranges_max=10)
    shell.send(QueueEntry(0, 99_999, None, b"noisy"))
    assert shell.partition.wants_more(shell.now)
    shell.send(*(QueueEntry(at, at, None, b"%d" % (at % 2)) for at in range(100_000, 100_020)))
    assert not shell.partition.wants_more(shell.now)


def test_window_of_a_fair_subscription_is_bounded() -> None:
    shell = Shell(fair=True, fair_window=1000)
    shell.send(QueueEntry(0, 999, None, b"noisy"))
    assert not shell.partition.wants_more(shell.now)
    shell.acquire(count=1)
    assert shell.partition.wants_more(shell.now)
