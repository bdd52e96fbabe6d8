"""Transactions on this node: the shell around the transactions room.

A request about a transactional id goes to its `Coordinator` (`coordinator.py`), which asks the room to
decide, appends the record to `__transaction_state`, applies it when it is committed and answers. When a
verdict is committed, `participants.py` writes the markers: to the partitions that the transaction has
reached, and to the groups whose offsets it commits. `coordination.py` has all coordinators of the node, one
for each partition of that topic, which is made when the first transactional id is asked for.

Start reading at `coordinator.py`.
"""
