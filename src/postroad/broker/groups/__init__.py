"""Consumer groups on this node: the shell around the groups room.

A request about a group goes through `calls.py` to the group's `Coordinator` (`coordinator.py`), which asks
the room to decide, appends the records to `__consumer_offsets`, applies them when they are committed and
answers. `coordination.py` has all coordinators of the node, one for each partition of that topic; `doubts.py`
says what is assumed of groups whose records were damaged.

Start reading at `coordinator.py`.
"""
