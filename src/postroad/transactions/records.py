"""The records of `__transaction_state`: key and value are JSON, so that any Kafka tool can read them.

    key                       value
    ["transaction", id]       Transaction: all that is known of the transactional id

A null value is a tombstone: the id was not used for long. The topic is compacted, so the last record of
each key is the state. A kind that is not known is skipped, so that a node can read what a newer one has
written. Topic ids are hexadecimal.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from postroad.transactions.transaction import Transaction

_KIND: Final = "transaction"

_decode_key = msgspec.json.Decoder(list[str | int]).decode
_decode_value = msgspec.json.Decoder(Transaction).decode
_encode = msgspec.json.Encoder().encode


class Record(NamedTuple):
    key: bytes
    value: bytes | None


def encode(transactional_id: str, transaction: Transaction | None) -> Record:
    return Record(_encode((_KIND, transactional_id)), None if transaction is None else _encode(transaction))


def decode(record: Record) -> tuple[str, Transaction | None] | None:
    """None for a kind that this version does not know. A record that is no JSON of its kind raises."""
    kind, transactional_id, *_ = _decode_key(record.key)
    if kind != _KIND:
        return None
    return str(transactional_id), None if record.value is None else _decode_value(record.value)
