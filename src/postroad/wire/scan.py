"""What lies in a stretch of a log, as far as queues must know: which offsets, and what they ask for.

Most messages ask for nothing. So the bytes are searched for the headers' common prefix, once over
the whole stretch, and a batch without it is plain: none of its records is looked at, and any number
of plain batches becomes one entry. Records are walked only where the prefix is found, where offsets
are missing (compaction), and where a subscription needs keys or tenants. What records may ask for:

    header                value                   meaning
    postroad-deliver-at   epoch ms                not before this time
    postroad-delay-ms     ms                      not before the record's timestamp plus this
    postroad-expires-at   epoch ms                not after this time
    postroad-dedup-id     1 byte or more          not if the same was there shortly before
    postroad-for          a subscription          not to any other

Times are ASCII digits, at most 15; 0 is none. A message with a time that can't be read is found as such
(UNREADABLE). Where both delays are given the later holds; where a header is given twice, the last.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from postroad.errors import CorruptMessage, MessageTooLarge, UnsupportedCompressionType
from postroad.wire.asked_times import DIGITS_MAX, TIME_HEADERS, read_time
from postroad.wire.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from postroad.wire.compression import decompress
from postroad.wire.header_names import DEDUP_ID, DELAY_MS, DELIVER_AT, FOR, PREFIX
from postroad.wire.record_walk import walk_records
from postroad.wire.records import read_varint

NAME_BYTES_MAX: Final = (
    16  # longer keys, tenants and ids stand as a digest: memory is bounded by their number
)
TIME_MAX: Final = 10**DIGITS_MAX - 1  # 64 bits hold any sum of such times
UNREADABLE: Final = -1  # instead of an expiry: a time that the message asks for can't be read

_PREFIX: Final = PREFIX.encode()
_NULL: Final = 1  # the varint -1
# base offset, length, attributes, last offset delta, base timestamp, max timestamp, count
_HEADER: Final = Struct(">qi9xhiqq14xi")
_PRODUCER_ID: Final = Struct(">q")
_PRODUCER_AT: Final = 43
_UNREADABLE: Final = (CorruptMessage, MessageTooLarge, UnsupportedCompressionType, IndexError)


class Scanned(NamedTuple):
    """Messages `first` to `last` that ask for the same, field for field as the queues' entry.

    One with a key is a single message.
    """

    first: int
    last: int
    key: bytes | None = None
    tenant: bytes | None = None
    deliver_at_ms: int = 0
    expires_at_ms: int = 0


Asked = tuple[bytes | None, bytes | None, int, int]
"""The last four fields of Scanned."""
Run = tuple[int, int, Asked]
"""Messages that become one entry: the first, the offset after the last, and what they ask for."""
Named = tuple[bytes | None, int, int | None, int, bytes | None] | None
"""What headers name: tenant, time of delivery, delay, expiry, id. None: another subscription."""
IsDuplicate = Callable[[bytes, int, int], bool]
"""Told of each message with an id, in the log's order: its id, offset and timestamp."""
IsAborted = Callable[[int, int], bool]
"""Told of each batch of a transaction: its producer's id and its base offset."""

_PLAIN: Final[Asked] = (None, None, 0, 0)


def scan(
    data: bytes | memoryview,
    first: int,
    *,
    keys: bool = False,
    tenant_header: bytes | None = None,
    is_duplicate: IsDuplicate | None = None,
    is_aborted: IsAborted | None = None,
    subscription: bytes | None = None,
) -> list[Scanned]:
    """The messages in whole batches whose CRCs hold, ascending, from offset `first` on.

    An offset in no entry holds no message: compaction took it, it is a control record, it is for another
    than `subscription` (None: for whomever), or `is_duplicate` or `is_aborted` says so. A batch whose records
    can't be read counts as plain, for it is the consumers' to refuse; nothing is ever raised.
    """
    stretch = bytes(data)
    tenant_field = None if tenant_header is None else _field(tenant_header)
    id_field = None if is_duplicate is None else _DEDUP_ID
    name = None if subscription is None else _short(subscription)
    wanted = _Wanted(first, keys, tenant_field, id_field, is_duplicate or _is_none, name)
    each = keys or tenant_header is not None
    entries: list[Scanned] = []
    run: Run = (first, first, _PLAIN)
    position, end, hit = 0, len(stretch), -1
    while position + HEADER_BYTES <= end:
        base, length, attributes, last_delta, _, _, count = _HEADER.unpack_from(stretch, position)
        start, position = position, position + LENGTH_END + length
        if length < HEADER_BYTES - LENGTH_END or position > end:
            break  # cut: not there yet
        last = base + last_delta
        if last < first or attributes & CONTROL:
            continue
        if attributes & TRANSACTIONAL and is_aborted is not None:
            (producer_id,) = _PRODUCER_ID.unpack_from(stretch, start + _PRODUCER_AT)
            if is_aborted(producer_id, base):
                continue
        if hit < start:
            hit = stretch.find(_PREFIX, start)
            hit = end if hit < 0 else hit
        if each or hit < position or count != last_delta + 1 or attributes & COMPRESSION_MASK:
            try:
                run = _read_batch(stretch, start, position, wanted, entries, run)
                continue
            except _UNREADABLE:
                pass
        run = _add_plain(entries, run, max(base, first), last)
    _close(entries, run)
    return entries


def _add_plain(entries: list[Scanned], run: Run, first: int, last: int) -> Run:
    if run[1] == first and run[2] == _PLAIN:
        return run[0], last + 1, _PLAIN
    _close(entries, run)
    return first, last + 1, _PLAIN


def _close(entries: list[Scanned], run: Run) -> None:
    first, after, asked = run
    if after > first:
        entries.append(Scanned(first, after - 1, *asked))


# --- inside a batch ----------------------------------------------------------------------------


class _Wanted(NamedTuple):
    first: int
    keys: bool
    tenant_field: bytes | None
    id_field: bytes | None
    is_duplicate: IsDuplicate
    subscription: bytes | None


def _read_batch(
    stretch: bytes, start: int, end: int, wanted: _Wanted, entries: list[Scanned], run: Run
) -> Run:
    """Add the messages of one batch; all of them, or it raises and none was added.

    Records of one batch often have the very same headers, which are then read once.
    """
    base, _, attributes, last_delta, base_time, max_time, count = _HEADER.unpack_from(stretch, start)
    first, keys, tenant_field, id_field, is_duplicate, subscription = wanted
    block, position, end = _unpack(stretch, start + HEADER_BYTES, end, attributes & COMPRESSION_MASK)
    headers = tenant_field is not None or block.find(_PREFIX, position, end) >= 0
    if not headers and not keys and count == last_delta + 1:
        return _add_plain(entries, run, max(base, first), base + last_delta)
    found: list[Scanned] = []
    known = _Headers(tenant_field, id_field, subscription)
    run_first, run_after, run_asked = run
    for delta, time_at, key_at, stop in walk_records(block, position, end, count, last_delta):
        offset = base + delta
        if offset < first:
            continue
        asked = _PLAIN
        key = _read_name(block, key_at, stop) if keys else None
        if headers:
            named = known[block[_skip(block, _skip(block, key_at)) : stop]]
            if named is None:
                continue
            tenant, deliver_at, delay, expires_at, identity = named
            if delay is not None or identity is not None:
                appended = attributes & LOG_APPEND_TIME
                time = max_time if appended else base_time + _read_time(block, time_at)
                if identity is not None and is_duplicate(identity, offset, time):
                    continue
                if delay is not None:
                    deliver_at = max(deliver_at, min(time + delay, TIME_MAX))
            asked = (key, tenant, deliver_at, expires_at)
        elif key is not None:
            asked = (key, None, 0, 0)
        if offset == run_after and key is None and asked == run_asked:
            run_after = offset + 1
        else:
            if run_after > run_first:
                found.append(_new(Scanned, (run_first, run_after - 1, *run_asked)))
            run_first, run_after, run_asked = offset, offset + 1, asked
    entries += found
    return run_first, run_after, run_asked


class _Headers(dict[bytes, Named]):
    """What the headers of a batch's records name, by their bytes."""

    def __init__(
        self, tenant_field: bytes | None, id_field: bytes | None, subscription: bytes | None
    ) -> None:
        self._sought = tenant_field, id_field, subscription

    def __missing__(self, fields: bytes) -> Named:
        named = self[fields] = _read_headers(fields, *self._sought)
        return named


def _unpack(stretch: bytes, position: int, end: int, codec: int) -> tuple[bytes, int, int]:
    """The plain block, and where its records begin and end."""
    if not codec:
        return stretch, position, end
    block = decompress(codec, memoryview(stretch)[position:end])
    return block, 0, len(block)


def _read_headers(
    fields: bytes, tenant_field: bytes | None, id_field: bytes | None, subscription: bytes | None
) -> Named:
    """What the end of a record, from its header count on, asks for.

    Names are compared with their lengths before them, as they stand: one slice and no decoding.
    """
    tenant = delay = identity = None
    deliver_at = expires_at = 0
    addressed = subscription
    is_readable = True
    count, position = read_varint(fields, 0)
    for _ in range(count):
        value_at = _skip(fields, position)
        field = fields[position:value_at]
        position = _skip(fields, value_at)
        if field == tenant_field:
            tenant = _read_name(fields, value_at, position)
        if field in _TIME_FIELDS:
            # A length of more than one byte is of more than 15 digits, and no digit itself.
            number = read_time(fields[value_at + 1 : position])
            if number is None:
                is_readable = False
            elif field == _DELIVER_AT:
                deliver_at = number
            elif field == _DELAY:
                delay = number
            else:
                expires_at = number
        elif field == id_field:
            identity = _read_name(fields, value_at, position) or identity
        elif field == _FOR and subscription is not None:
            addressed = _read_name(fields, value_at, position)
    if position != len(fields):
        raise CorruptMessage("A record's length does not fit what is in it.")
    if addressed != subscription:
        return None
    if not is_readable:
        return tenant, 0, None, UNREADABLE, identity
    return tenant, deliver_at, delay, expires_at, identity


def _is_none(identity: bytes, offset: int, timestamp: int) -> bool:
    """Nobody asks: no message is a duplicate."""
    return False


def _read_time(block: bytes, position: int) -> int:
    if (byte := block[position]) < 0x80:
        return byte >> 1 ^ -(byte & 1)
    return read_varint(block, position)[0]


def _skip(block: bytes, position: int) -> int:
    """The position after a length (-1: null) and its bytes: past the record, if they claim so."""
    if (byte := block[position]) & 0x81 == 0:
        return position + 1 + (byte >> 1)
    if byte == _NULL:
        return position + 1
    if not byte & 1 and (high := block[position + 1]) < 0x80:
        return position + 2 + ((byte & 0x7F | high << 7) >> 1)
    length, position = read_varint(block, position)
    return position + length if length > 0 else position


def _read_name(block: bytes, position: int, stop: int) -> bytes | None:
    """A key, a tenant or an id, or what stands for it."""
    length, position = read_varint(block, position)
    if length < 0:
        return None
    if position + length > stop:
        raise CorruptMessage("A field reaches past the end of its record.")
    return _short(block[position : position + length])


def _short(name: bytes) -> bytes:
    return name if len(name) <= NAME_BYTES_MAX else blake2b(name, digest_size=NAME_BYTES_MAX).digest()


def _field(name: bytes) -> bytes:
    """A header's name as it stands in a record, with its length before it."""
    number, prefix = len(name) << 1, bytearray()
    while number > 0x7F:
        prefix.append(number & 0x7F | 0x80)
        number >>= 7
    prefix.append(number)
    return bytes(prefix) + name


_DELIVER_AT: Final = _field(DELIVER_AT.encode())
_DELAY: Final = _field(DELAY_MS.encode())
_DEDUP_ID: Final = _field(DEDUP_ID.encode())
_FOR: Final = _field(FOR.encode())
_TIME_FIELDS: Final = {_field(name.encode()) for name in TIME_HEADERS}
_new = tuple.__new__  # Scanned's own constructor takes twice as long
