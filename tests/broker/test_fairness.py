"""Fairness on a node: who else waits is known soon, however much a noisy tenant has published before."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from postroad.wire.records import Record, encode_batch
from tests.broker.harness import Running, running_node
from tests.broker.test_queues import GROUP, configure
from tests.clients.share_session import Fate, Session, Word, session
from tests.clients.wait import until
from tests.faults.raw import send_batch

NOISY, QUIET = b"noisy", b"quiet"


def publish_as(running: Running, tenant: bytes, count: int, size: int = 200) -> None:
    now_ms = int(time.time() * 1000)
    with running.connect() as connection:
        for first in range(0, count, 500):
            some = range(first, min(first + 500, count))
            batch = [Record(n - first, now_ms, None, tenant.ljust(size), [("tenant", tenant)]) for n in some]
            assert send_batch(connection, "jobs", encode_batch(batch)).error_code == 0


def served_until(member: Session, tenant: bytes) -> Counter[bytes]:
    """How many messages of each tenant a consumer got that accepts them all, up to the first of this one."""
    served: Counter[bytes] = Counter()
    while not served[tenant]:
        fetched = member.fetch_some(max_records=100)
        served.update((held.value or b"").rstrip() for held in fetched.held)
        words = [Word(offset, offset, [Fate.ACCEPT]) for offset in fetched.offsets]
        assert member.acknowledge(*words) == 0
    return served


def test_noisy_tenant_does_not_starve_the_others_however_far_behind_they_lie(
    start: Callable[..., Running],
) -> None:
    running = start()
    running.create("jobs")
    configure(running, postroad_fair_by="tenant")
    publish_as(running, NOISY, 30_000)
    publish_as(running, QUIET, 5)
    with session(running.bootstrap, GROUP, "jobs") as member:
        served = served_until(member, QUIET)
    assert served[QUIET] == 5
    assert served[NOISY] <= 3_000, "what went out while the log was read"


def test_others_are_found_behind_a_noisy_tenant_on_the_disk_while_nobody_asks(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        running.create("jobs")
        configure(running, postroad_fair_by="tenant")
        publish_as(running, NOISY, 20_000)
        publish_as(running, QUIET, 5)
    with running_node(tmp_path) as running, session(running.bootstrap, GROUP, "jobs") as member:
        assert len(member.fetch_some(max_records=1).held) == 1
        (queue,) = running.node.subscriptions.subscription(GROUP).queues.values()
        until(lambda: queue.core.frontier == 20_005, "the log is read")
        held = member.fetch_some(max_records=10).held
    assert Counter((each.value or b"").rstrip() for each in held)[QUIET] == 5
