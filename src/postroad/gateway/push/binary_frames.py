"""Frames as bytes: subprotocol `postroad.v1.binary`, in binary frames. Numbers are big-endian.

From the client:

    credit    1 (1) · messages (4)
    settle    2 accept, 3 release, 4 reject, 5 extend (1) · request (4) · ms (4) · ids (8 each)
    the same by receipts: 0x80 added to the first byte; in place of ids: length (2) and receipt, each
    transaction   6 (1) · request (4) · count (4), ids (8 each) · count (4), receipts as above ·
                  count (4), messages to publish, each: topic length (2), topic · partition (4), -1: by its
                  key · key length (4), key · value length (4), value · headers (4), each: name length (4),
                  name, value length (4), value

`request` 0: only what fails is told. `ms` is the delay of a release, the new lock of an extension;
0xFFFFFFFF: as the subscription says. To the client:

    messages  0x10 (1) · any number of messages
    message   id (8) · partition (4) · offset (8) · timestamp (8) · attempt (4) · headers (4) ·
              topic length (2), topic · key length (4), key · value length (4), value · for each header:
              name length (4), name, value length (4), value · receipt length (2), receipt
              A length of -1: null. An empty receipt: none was asked for.
    settled   0x11 (1) · request (4) · for each reason: text length (2), text · count (4), ids (8 each) ·
              count (4), for each receipt: length (2), receipt
    expired   0x12 (1) · ids (8 each)
    error     0x13 (1) · code (2) · text
    committed 0x14 (1) · request (4) · partition (4) and offset (8) of each message
    refused   0x15 (1) · request (4) · status (2) · text
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from struct import Struct
from typing import Final

from postroad.client.share_message import AckType
from postroad.gateway.push.binary_transactions import (
    TRANSACTION,
    read_transaction,
    write_committed,
    write_refused,
)
from postroad.gateway.push.frames import (
    CREDIT_MAX,
    IDS_MAX,
    MS_MAX,
    BadFrame,
    Credit,
    Failures,
    NewTransaction,
    Outgoing,
    Settlement,
)
from postroad.gateway.rest.problems import Problem
from postroad.gateway.rest.publish import Published

SUBPROTOCOL: Final = "postroad.v1.binary"

CREDIT: Final = 1
ACKNOWLEDGEMENTS: Final = {2: AckType.ACCEPT, 3: AckType.RELEASE, 4: AckType.REJECT, 5: AckType.RENEW}
BY_RECEIPT: Final = 0x80
MESSAGES: Final = 0x10
SETTLED: Final = 0x11
EXPIRED: Final = 0x12
ERROR: Final = 0x13
NO_MS: Final = 0xFFFFFFFF

_CREDIT: Final = Struct(">BI")
_SETTLE: Final = Struct(">BII")
_ID_BYTES: Final = 8
_MESSAGE: Final = Struct(">QiqqIIH")
_SHORT: Final = Struct(">H")
_LENGTH: Final = Struct(">i")
_SETTLED: Final = Struct(">BI")
_ERROR: Final = Struct(">BH")
_COUNT: Final = Struct(">I")
_NULL: Final = _LENGTH.pack(-1)


class BinaryFormat:
    subprotocol = SUBPROTOCOL
    is_text = False

    def read(self, frame: str | bytes) -> Credit | Settlement | NewTransaction:
        if isinstance(frame, str):
            raise BadFrame(f"Frames of {SUBPROTOCOL} are binary; this one is text.")
        try:
            if frame and frame[0] == CREDIT:
                return _read_credit(frame)
            if frame and frame[0] == TRANSACTION:
                return read_transaction(frame)
            return _read_settlement(frame)
        except struct.error:
            raise BadFrame(f"The frame of {len(frame)} bytes does not have the length of its kind.") from None

    def messages(self, outgoing: Sequence[Outgoing]) -> bytes:
        parts = [bytes([MESSAGES])]
        for each in outgoing:
            _write_message(parts, each)
        return b"".join(parts)

    def settled(self, request: int | None, failures: Failures) -> bytes:
        parts = [_SETTLED.pack(SETTLED, request or 0)]
        for text, (ids, receipts) in failures.items():
            parts += [_short(text.encode()), _COUNT.pack(len(ids)), _ids(ids), _COUNT.pack(len(receipts))]
            parts += [_short(receipt.encode()) for receipt in receipts]
        return b"".join(parts)

    def committed(self, request: int, published: Sequence[Published]) -> bytes:
        return write_committed(request, published)

    def refused(self, request: int, problem: Problem) -> bytes:
        return write_refused(request, problem)

    def expired(self, ids: Sequence[int]) -> bytes:
        return bytes([EXPIRED]) + _ids(ids)

    def error(self, code: int, text: str) -> bytes:
        return _ERROR.pack(ERROR, code) + text.encode()


def _read_credit(frame: bytes) -> Credit:
    _, messages = _CREDIT.unpack(frame)
    if not 1 <= messages <= CREDIT_MAX:
        raise BadFrame(f"A credit is 1 to {CREDIT_MAX:,} messages, not {messages:,}.")
    return Credit(messages)


def _read_settlement(frame: bytes) -> Settlement:
    kind, request, ms = _SETTLE.unpack_from(frame)
    type_ = ACKNOWLEDGEMENTS.get(kind & ~BY_RECEIPT)
    if type_ is None:
        raise BadFrame(f"Unknown frame kind {kind}.")
    if ms != NO_MS and ms > MS_MAX:
        raise BadFrame(f"{ms:,} ms is more than {MS_MAX:,}.")
    ids: Sequence[int] = ()
    receipts: Sequence[str] = ()
    if kind & BY_RECEIPT:
        receipts = _read_receipts(frame, _SETTLE.size)
    else:
        count = (len(frame) - _SETTLE.size) // _ID_BYTES
        ids = struct.unpack(f">{count}Q", frame[_SETTLE.size :])
    if max(len(ids), len(receipts)) > IDS_MAX:
        raise BadFrame(f"A frame can settle at most {IDS_MAX:,} messages.")
    given = None if ms == NO_MS else ms
    lock_ms = given if type_ is AckType.RENEW else None
    delay_ms = given if type_ is AckType.RELEASE else None
    return Settlement(type_, ids, receipts, request or None, lock_ms, delay_ms)


def _read_receipts(frame: bytes, at: int) -> list[str]:
    receipts: list[str] = []
    while at < len(frame):
        (length,) = _SHORT.unpack_from(frame, at)
        at += _SHORT.size + length
        if at > len(frame):
            raise BadFrame("The frame ends within a receipt.")
        receipts.append(frame[at - length : at].decode("ascii", "replace"))
    return receipts


def _write_message(parts: list[bytes], outgoing: Outgoing) -> None:
    topic, partition, offset, timestamp, key, value, headers, attempt = outgoing.message
    name = topic.encode()
    head = _MESSAGE.pack(outgoing.id, partition, offset, timestamp, attempt, len(headers), len(name))
    parts += (head, name)
    _write_bytes(parts, key)
    _write_bytes(parts, value)
    for header, content in headers:
        _write_bytes(parts, header.encode("utf-8", "surrogateescape"))
        _write_bytes(parts, content)
    parts.append(_short(outgoing.receipt.encode()))


def _write_bytes(parts: list[bytes], data: bytes | None) -> None:
    if data is None:
        parts.append(_NULL)
    else:
        parts += (_LENGTH.pack(len(data)), data)


def _short(data: bytes) -> bytes:
    return _SHORT.pack(len(data)) + data


def _ids(ids: Sequence[int]) -> bytes:
    return struct.pack(f">{len(ids)}Q", *ids)
