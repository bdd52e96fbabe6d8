"""Transactions: who may write under a transactional id, and what becomes of what it wrote.

The coordinator of a transactional id decides one request at a time. A decision is an answer and a record for
`__transaction_state`, and changes nothing; once the record is committed it is applied, and the answer
leaves. The order that everything rests on: the verdict (Prepare) is committed before the first marker is
staged, and the transaction is Complete when all markers are committed. `docs/formats/transaction-state.md`
has the records.

The room is pure: no clock, no socket, no file. Start reading at `transaction.py`, the state machine of one
transactional id; `coordinator.py` (`Transactions`) has all of a partition's, their deadlines, and which
connection spoke last for each.
"""
