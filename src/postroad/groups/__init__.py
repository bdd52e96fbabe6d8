"""Groups: who reads which partition, and how far they have got.

Two protocols share a group's name and its committed offsets: the classic one (join, sync, heartbeat, leave;
a client computes the assignment) and KIP-848's (one heartbeat; the server computes it). What must survive
is records in the internal topic `__consumer_offsets`; `docs/formats/consumer-offsets.md` has their layout.

The room is pure: it decides and applies. It opens no socket, reads no clock and appends nothing itself; the
broker's coordinator appends the records, waits until they are committed, applies them and then answers.

Start reading at `coordinator.py` (`Groups`, all that the broker calls), then `group.py`. The classic
protocol is `classic.py` (state), `join.py`, `sync.py`, `leave.py` and `rebalance.py`; KIP-848 is
`consumer.py` (state), `heartbeat.py`, `reconcile.py`, `target.py`, `assignors.py` and `regex.py`; offsets are
`offsets.py`. A group with members changes from one protocol to the other by `migration.py` and
`classic_members.py`. Members of share groups (KIP-932) are apart from all that, and soft: `share.py`
(`ShareGroups`), `share_group.py` and `share_assignor.py`.
"""
