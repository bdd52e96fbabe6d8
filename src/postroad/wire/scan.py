"""What lies in a stretch of a log, as far as queues must know: which offsets, and what they ask for.

Most messages ask for nothing. So the bytes are searched for the headers' common prefix, once over
the whole stretch, and a batch without it is plain: none of its records is looked at, and any number
of plain batches becomes one entry. Records are walked only where the prefix is found, where offsets
are missing (compaction), and where a subscription needs keys or tenants. What records may ask for:

    header                value                   meaning
    postroad-deliver-at   epoch ms                not before this time
    postroad-delay-ms     ms                      not before the record's timestamp plus this
    postroad-expires-at   epoch ms                not after this time

Values are ASCII digits, at most 15; any other is ignored, as 0 is. Where both delays are given the later
holds; where a header is given twice, the last that can be read.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from postroad.errors import CorruptMessage, MessageTooLarge, UnsupportedCompressionType
from postroad.wire.batch import COMPRESSION_MASK, CONTROL, HEADER_BYTES, LENGTH_END, LOG_APPEND_TIME
from postroad.wire.compression import decompress
from postroad.wire.record_walk import walk_records
from postroad.wire.records import read_varint

DELIVER_AT: Final = b"postroad-deliver-at"
DELAY_MS: Final = b"postroad-delay-ms"
EXPIRES_AT: Final = b"postroad-expires-at"

NAME_BYTES_MAX: Final = 16  # longer keys and tenants stand as a digest: memory is bounded by their number
TIME_MAX: Final = 10**15 - 1  # what 15 digits hold; 64 bits hold any sum of such times

_PREFIX: Final = b"postroad-"
_DIGITS_MAX: Final = 15
# base offset, length, attributes, last offset delta, base timestamp, max timestamp, count
_HEADER: Final = Struct(">qi9xhiqq14xi")
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

_PLAIN: Final[Asked] = (None, None, 0, 0)


def scan(
    data: bytes | memoryview, first: int, *, keys: bool = False, tenant_header: bytes | None = None
) -> list[Scanned]:
    """The messages in whole batches whose CRCs hold, ascending, from offset `first` on.

    An offset in no entry holds no message: compaction took it, or it is a control record. A batch whose
    records can't be read counts as plain, for it is the consumers' to refuse; nothing is ever raised.
    """
    stretch = bytes(data)
    wanted = _Wanted(first, keys, None if tenant_header is None else _field(tenant_header))
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


def _read_batch(
    stretch: bytes, start: int, end: int, wanted: _Wanted, entries: list[Scanned], run: Run
) -> Run:
    """Add the messages of one batch; all of them, or it raises and none was added."""
    base, _, attributes, last_delta, base_time, max_time, count = _HEADER.unpack_from(stretch, start)
    first, keys, tenant_field = wanted
    block, position = stretch, start + HEADER_BYTES
    if codec := attributes & COMPRESSION_MASK:
        block = decompress(codec, memoryview(stretch)[position:end])
        position, end = 0, len(block)
    headers = tenant_field is not None or block.find(_PREFIX, position, end) >= 0
    if not headers and not keys and count == last_delta + 1:
        return _add_plain(entries, run, max(base, first), base + last_delta)
    found: list[Scanned] = []
    run_first, run_after, run_asked = run
    for delta, time_at, key_at, stop in walk_records(block, position, end, count, last_delta):
        offset = base + delta
        if offset < first:
            continue
        asked = _PLAIN
        key = _read_name(block, key_at, stop) if keys else None
        if headers:
            tenant, deliver_at, delay, expires_at = _read_headers(block, key_at, stop, tenant_field)
            if delay is not None:
                appended = attributes & LOG_APPEND_TIME
                time = max_time if appended else base_time + read_varint(block, time_at)[0]
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


def _read_headers(
    block: bytes, position: int, stop: int, tenant_field: bytes | None
) -> tuple[bytes | None, int, int | None, int]:
    """Tenant, time of delivery, delay and expiry, of the record whose key stands at `position`.

    Names are compared with their lengths before them, as they stand: one slice and no decoding.
    """
    tenant = delay = None
    deliver_at = expires_at = 0
    position = _skip(block, _skip(block, position))  # key, value
    count, position = read_varint(block, position)
    for _ in range(count):
        value_at = _skip(block, position)
        field = block[position:value_at]
        position = _skip(block, value_at)
        if field == tenant_field:
            tenant = _read_name(block, value_at, stop)
        if field in _TIME_FIELDS and (number := _read_digits(block, value_at, position)) is not None:
            if field == _DELIVER_AT:
                deliver_at = number
            elif field == _DELAY:
                delay = number
            else:
                expires_at = number
    if position != stop:
        raise CorruptMessage("A record's length does not fit what is in it.")
    return tenant, deliver_at, delay, expires_at


def _skip(block: bytes, position: int) -> int:
    """The position after a length (-1: null) and its bytes: past the record, if they claim so."""
    if (byte := block[position]) & 0x81 == 0:
        return position + 1 + (byte >> 1)
    length, position = read_varint(block, position)
    return position + length if length > 0 else position


def _read_name(block: bytes, position: int, stop: int) -> bytes | None:
    """A key or a tenant, or what stands for it."""
    length, position = read_varint(block, position)
    if length < 0:
        return None
    if position + length > stop:
        raise CorruptMessage("A field reaches past the end of its record.")
    name = block[position : position + length]
    return name if length <= NAME_BYTES_MAX else blake2b(name, digest_size=NAME_BYTES_MAX).digest()


def _read_digits(block: bytes, position: int, stop: int) -> int | None:
    digits = block[position + 1 : stop]  # a length of more than one byte is of more than 15 digits
    return int(digits) if digits.isdigit() and len(digits) <= _DIGITS_MAX else None


def _field(name: bytes) -> bytes:
    """A header's name as it stands in a record, with its length before it."""
    number, prefix = len(name) << 1, bytearray()
    while number > 0x7F:
        prefix.append(number & 0x7F | 0x80)
        number >>= 7
    prefix.append(number)
    return bytes(prefix) + name


_DELIVER_AT: Final = _field(DELIVER_AT)
_DELAY: Final = _field(DELAY_MS)
_TIME_FIELDS: Final = {_DELIVER_AT, _DELAY, _field(EXPIRES_AT)}
_new = tuple.__new__  # Scanned's own constructor takes twice as long
