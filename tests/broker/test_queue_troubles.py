"""A queue goes on: while its state can't be written, and over what compaction took out of its log."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

import pytest
from clients.share_session import session

from broker.harness import Running, until
from broker.test_queues import GROUP, configure, publish_with_header, refuse_writes_of_state


@pytest.mark.parametrize("trouble", ["lock", "expiry"])
def test_state_that_can_not_be_written_is_tried_again_once_a_second(
    start: Callable[..., Running], trouble: str
) -> None:
    running = start(durability_flush="os")
    running.create("jobs")
    configure(running, share_record_lock_duration_ms=100, share_delivery_count_limit=1)
    disk = refuse_writes_of_state(running)
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch().held == []  # now there is a state
        if trouble == "lock":
            running.publish("jobs", b"x")
            assert member.fetch_some().offsets == [0]
        else:
            publish_with_header(running, "jobs", "postroad-expires-at", int(time.time() * 1000) - 1)
        disk.fail("append", "", errno.ENOSPC)
        with session(running.bootstrap, GROUP, "jobs") as other:
            began = time.monotonic()
            while time.monotonic() - began < 2.2:
                assert other.fetch(wait_ms=100).held == []
        assert 2 <= disk.refusals <= 5
        disk.heal()
        (ledger,) = running.node.subscriptions.ledgers(GROUP)
        until(lambda: ledger.start == 1, "it is dead, and nobody had to ask")
