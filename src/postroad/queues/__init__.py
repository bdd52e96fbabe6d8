"""Queues: each message of a subscription is acquired, acknowledged, released, archived on its own (KIP-932).

The room knows offsets, members and times; it never sees a message. What must survive (which messages are
done, how often the others were delivered) is the `Ledger`, changed by `Update` records in the partition's
ledger log and by nothing else; `docs/formats/ledger.md` has their layout. Who holds what, and from when on
something is available, is soft: losing it costs a redelivery, never a message.

The room is pure: it opens no socket, reads no clock, appends nothing. The broker tells it what lies in the
log (`Entry`), takes what it decides (`Settlement`), makes that durable and applies it.

Start reading at `share_partition.py`, then `ledger.py`.
"""
