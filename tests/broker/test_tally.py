"""What became of a subscription's messages is counted, each once, when it has taken effect."""

from __future__ import annotations

from collections.abc import Callable

from postroad.wire import node_metrics
from tests.broker.harness import Running
from tests.broker.test_queues import GROUP, acquire_as, configure, refuse_writes_of_state, settle_as
from tests.clients.share_session import Error, Fate, Word, one, session
from tests.clients.wait import until

RETURN = 100


def test_every_outcome_of_a_delivery_is_counted(start: Callable[..., Running]) -> None:
    running = start()
    topic_id = running.create("jobs")
    configure(running, share_delivery_count_limit=2)
    running.publish("jobs", *(b"%d" % n for n in range(10)))
    with session(running.bootstrap, GROUP, "jobs") as member:
        held = 0
        while held < 10:
            held += len(member.fetch_some().held)
        said = [Word(0, 3, [Fate.ACCEPT]), Word(4, 5, [Fate.RELEASE]), one(6, Fate.REJECT)]
        assert member.acknowledge(*said, Word(7, 8, [RETURN])) == Error.NONE
        # 9 is held when the member leaves: it counts as released.
    until(lambda: counted(running)["released"] == 3, "what it held is released")
    expected = {"delivered": 10, "accepted": 4, "released": 3, "rejected": 1, "returned": 2}
    assert counted(running) == {**expected, "expired": 0, "dead": 1}
    assert acquire_as(running, topic_id, "me", lock_ms=1) == [4, 5, 7, 8, 9]
    until(lambda: counted(running)["expired"] == 5, "their locks have ended")
    expected |= {"delivered": 15, "expired": 5, "dead": 4}  # 4, 5 and 9 were delivered twice
    assert counted(running) == expected
    text = running.call(node_metrics, 0, node_metrics.NodeMetricsRequest()).text
    for name, count in expected.items():
        assert f'postroad_subscription_{name}_total{{node="1",subscription="{GROUP}"}} {count}\n' in text


def test_metrics_leave_out_what_is_only_the_record_of_a_tool(start: Callable[..., Running]) -> None:
    running = start()
    running.create("jobs")
    configure(running, postroad_topics="jobs")
    configure(running, "redriver", postroad_topics="jobs", postroad_bookkeeping="true")
    running.publish("jobs", b"x")
    text = running.call(node_metrics, 0, node_metrics.NodeMetricsRequest()).text
    assert f'postroad_subscription_lag_messages{{node="1",subscription="{GROUP}"' in text
    assert "redriver" not in text


def test_what_could_not_be_written_is_not_counted(start: Callable[..., Running]) -> None:
    running = start()
    topic_id = running.create("jobs")
    configure(running)
    running.publish("jobs", b"x")
    assert acquire_as(running, topic_id, "me") == [0]
    disk = refuse_writes_of_state(running)
    disk.fail("append", "", 28)
    assert settle_as(running, topic_id, "me", 0) != Error.NONE
    assert counted(running)["accepted"] == 0
    disk.heal()
    assert until(lambda: settle_as(running, topic_id, "me", 0) == Error.NONE, "it is accepted")
    assert counted(running)["accepted"] == 1


def test_at_most_once_what_is_handed_out_is_accepted(start: Callable[..., Running]) -> None:
    running = start()
    running.create("jobs")
    configure(running, postroad_delivery="at-most-once")
    running.publish("jobs", b"a", b"b")
    with session(running.bootstrap, GROUP, "jobs") as member:
        held = 0
        while held < 2:
            held += len(member.fetch_some().held)
    tally = counted(running)
    assert (tally["delivered"], tally["accepted"], tally["released"]) == (2, 2, 0)


def counted(running: Running) -> dict[str, int]:
    def read() -> dict[str, int]:
        tally = running.node.subscriptions.tally(GROUP)
        return {name: getattr(tally, name) for name in tally.__slots__}

    return running.on_loop(read)
