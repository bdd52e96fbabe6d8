"""What the machine draws: members, settings of a queue, and messages."""

from __future__ import annotations

from hypothesis import strategies as st

from postroad.queues.settings import Backoff, Order, QueueSettings

MEMBERS = st.sampled_from(["anna", "ben", "cleo"])
SOON = st.sampled_from([0, 0, 0, 0, -500, 40, 400])  # asked for by a message, from now on; 0: not at all

SETTINGS = st.builds(
    QueueSettings,
    lock_ms=st.sampled_from([0, 100, 100, 1000]),
    delivery_limit=st.sampled_from([0, 1, 2, 3]),
    backoff=st.sampled_from([Backoff(), Backoff(50, 2.0, 300), Backoff(50, 3.0, 1000, 0.5)]),
    order=st.sampled_from(Order),
    fair=st.booleans(),
    dead_letters=st.booleans(),
    partition_locks_max=st.sampled_from([5, 1000, 1000, 1000]),
    member_locks_max=st.sampled_from([3, 1000, 1000, 1000]),
    locks_max=st.sampled_from([4, 1000, 1000, 1000]),
    at_most_once=st.sampled_from([False, False, False, True]),
    waiting_max=st.just(100),
    fair_ranges_max=st.just(100),
    delayed_max=st.just(100),
)

# How many messages, their key and tenant, when they are due and when they expire, and a gap before them.
MESSAGES = st.tuples(
    st.integers(1, 4),
    st.sampled_from([None, b"a", b"b", b"c"]),
    st.sampled_from([None, b"x", b"y"]),
    SOON,
    SOON,
    st.sampled_from([0, 0, 0, 1, 2]),
)
