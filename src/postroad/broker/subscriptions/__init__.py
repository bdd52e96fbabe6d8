"""Subscriptions on this node: the shell around the queues room.

`subscriptions.py` knows them all; a `Subscription` has its settings and a `Queue` for each partition. A queue
binds the room's `SharePartition` to the partition's log: it tells it what lies there (`stretch.py`), builds
what was acquired into an answer, and makes what was decided durable (`states.py`), in the ledger beside the
partition's messages. `ledgers.py` knows the ledgers of all partitions that the node leads; they begin in
`ledger_creation.py`, are read in `replay.py` and meet their messages in `reconciliation.py`. What a group's
coordinator asks of a partition's leader is in `partition_ledgers.py`. `pledges.py` has acknowledgements that
are part of transactions, and how these end. `membership.py` knows the members and their share sessions,
`sharing.py` how many messages each may take. `dead_letters.py` copies what was archived; `administration.py`
is what operators do.

Start reading at `queue.py`.
"""
