"""Replication: when a message is committed, and how a follower's log becomes equal to its leader's.

The room knows offsets, leader epochs, node ids and times in milliseconds; it never sees a record. A leader
counts what its followers have (`Leader`), which moves the high watermark and proposes changes of the in-sync
replicas; a follower knows where to fetch next and what an answer asks of its log (`Follower`). Both agree on
where two logs part by `divergence.py`.

The room is pure: it opens no socket, reads no clock, appends nothing. The broker answers fetches, writes
logs, and commits proposals to the coordination store; the store's watch, never the answer of a commit, tells
the leader what became of a proposal.

Start reading at `leader.py`, then `in_sync.py`, `follower.py` and `divergence.py`.
"""
