"""Subscriptions on this node: the shell around the queues room.

`subscriptions.py` knows them all; a `Subscription` has its settings and a `Queue` for each partition. A queue
binds the room's `SharePartition` to the partition's log: it tells it what lies there (`stretch.py`), builds
what was acquired into an answer, and makes what was decided durable (`states.py`). `sessions.py` are the
share sessions of connected members; `dead_letters.py` copies what was archived.

Start reading at `queue.py`.
"""
