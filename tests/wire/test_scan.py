"""What a scan finds is what decoding the records finds, whatever the batches look like."""

from __future__ import annotations

import random
from hashlib import blake2b
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.queues.entry import QueueEntry
from postroad.wire import batch as batches
from postroad.wire.asked_times import unreadable_time
from postroad.wire.compression import NAMES
from postroad.wire.records import Record, decode_records, encode_batch
from postroad.wire.scan import TIME_MAX, UNREADABLE, Scanned, scan

CODECS = range(len(NAMES))
NOW = 1_700_000_000_000

digits = st.sampled_from(
    [b"0", b"7", b"1700000000500", b"9" * 15, b"9" * 16, b"", b"-5", b"+5", b" 5", b"1_0"]
)
values = st.none() | digits | st.sampled_from(["٣".encode(), b"x" * 70, b"1" * 64])
TIMES = ["postroad-deliver-at", "postroad-delay-ms", "postroad-expires-at"]
names = st.sampled_from([*TIMES, "postroad-dedup-id", "postroad-other", "tenant", "", "t"])
headers = st.lists(st.tuples(names, values), max_size=4)
blobs = st.none() | st.binary(max_size=40) | st.sampled_from([b"postroad-", b"v" * 200, b"k" * 20_000])
contents = st.tuples(st.integers(-5, 10**12), blobs, blobs, headers)
gaps = st.sampled_from([0, 0, 0, 0, 0, 0, 0, 0, 1, 100, 9000])


@st.composite
def stretches(draw: st.DrawFn) -> list[bytes]:
    """Batches as they lie in a segment: with gaps in and between them, control batches, odd times."""
    stretch = []
    offset = draw(st.integers(0, 2**40))
    for drawn in draw(st.lists(st.lists(contents, max_size=6), min_size=1, max_size=5)):
        base, records = offset, []
        for timestamp, key, value, named in drawn:
            offset += draw(gaps)
            records.append(Record(offset, NOW + timestamp, key, value, named))
            offset += 1
        offset = max(offset, base + 1) + draw(gaps)
        attributes = draw(st.sampled_from([0, 0, 0, batches.CONTROL, batches.LOG_APPEND_TIME]))
        codec = draw(st.sampled_from(CODECS))
        batch = encode_batch(
            records,
            base_offset=base,
            last_offset_delta=offset - 1 - base,
            attributes=attributes,
            compression=codec,
        )
        stretch.append(bytes(batch))
        offset += draw(gaps)
    return stretch


def short(name: bytes | None) -> bytes | None:
    return blake2b(name, digest_size=16).digest() if name is not None and len(name) > 16 else name


def number(value: bytes | None) -> int | None:
    return int(value) if value and len(value) <= 15 and set(value) <= set(b"0123456789") else None


def asked(record: Record, keys: bool, tenant_header: bytes | None) -> Scanned:
    """The naive way: one record after the other."""
    tenant, deliver_at, expires_at, delayed_until = None, 0, 0, 0
    for name, value in record.headers:
        if tenant_header is not None and name == tenant_header.decode():
            tenant = value
        if (time := number(value)) is not None:
            if name == "postroad-deliver-at":
                deliver_at = time
            if name == "postroad-delay-ms":
                delayed_until = min(record.timestamp + time, TIME_MAX)
            if name == "postroad-expires-at":
                expires_at = time
    key = short(record.key) if keys else None
    if any(name in TIMES and number(value) is None for name, value in record.headers):
        return Scanned(record.offset, record.offset, key, short(tenant), 0, UNREADABLE)
    return Scanned(
        record.offset, record.offset, key, short(tenant), max(deliver_at, delayed_until), expires_at
    )


def naive(stretch: list[bytes], first: int, keys: bool, tenant_header: bytes | None) -> list[Scanned]:
    merged: list[Scanned] = []
    for batch in stretch:
        if batches.read_header(batch).attributes & batches.CONTROL:
            continue
        for record in decode_records(batch):
            entry = asked(record, keys, tenant_header)
            if record.offset < first:
                continue
            before = merged[-1] if merged else None
            if before and before.last + 1 == entry.first and before[2:] == entry[2:] and entry.key is None:
                merged[-1] = before._replace(last=entry.last)
            else:
                merged.append(entry)
    return merged


def identities(stretch: list[bytes], first: int) -> list[tuple[bytes, int, int]]:
    """The id, offset and time of each message that has an id."""
    found = []
    for batch in stretch:
        header = batches.read_header(batch)
        if header.attributes & batches.CONTROL:
            continue
        for record in decode_records(batch):
            given = [short(value) for name, value in record.headers if name == "postroad-dedup-id" and value]
            if record.offset >= first and given and given[-1] is not None:
                found.append((given[-1], record.offset, record.timestamp))
    return found


@settings(max_examples=300, deadline=None)
@given(
    stretch=stretches(),
    skipped=st.integers(0, 20),
    keys=st.booleans(),
    tenant_header=st.sampled_from([None, b"tenant", b"", b"postroad-expires-at", b"absent" * 30]),
)
def test_a_scan_finds_what_decoding_finds(
    stretch: list[bytes], skipped: int, keys: bool, tenant_header: bytes | None
) -> None:
    first = batches.read_header(stretch[0]).base_offset + skipped
    expected = naive(stretch, first, keys, tenant_header)
    data = b"".join(stretch)
    assert scan(data, first, keys=keys, tenant_header=tenant_header) == expected
    assert scan(memoryview(data), first, keys=keys, tenant_header=tenant_header) == expected


@settings(max_examples=150, deadline=None)
@given(stretch=stretches(), skipped=st.integers(0, 20), keys=st.booleans(), data=st.data())
def test_a_scan_leaves_out_what_it_is_told_is_a_duplicate(
    stretch: list[bytes], skipped: int, keys: bool, data: st.DataObject
) -> None:
    first = batches.read_header(stretch[0]).base_offset + skipped
    expected = identities(stretch, first)
    left_out = {offset for _, offset, _ in expected if data.draw(st.booleans())}
    told = []

    def is_duplicate(identity: bytes, offset: int, timestamp: int) -> bool:
        told.append((identity, offset, timestamp))
        return offset in left_out

    entries = scan(b"".join(stretch), first, keys=keys, is_duplicate=is_duplicate)
    assert told == expected
    everything = naive(stretch, first, keys, None)
    wanted = {o: each[2:] for each in everything for o in offsets_of(each) if o not in left_out}
    assert {o: each[2:] for each in entries for o in offsets_of(each)} == wanted


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", [b"wk", b"w" * 200])
def test_a_scan_leaves_out_what_is_for_another_subscription(codec: int, name: bytes) -> None:
    addressed: list[list[tuple[str, bytes | None]]] = [[], [("postroad-for", name)], [("postroad-for", b"x")]]
    addressed += [[("postroad-for", None)], [("postroad-for", b"x"), ("postroad-for", name)]]
    records = [Record(n, NOW, None, b"", headers) for n, headers in enumerate(addressed)]
    batch = bytes(encode_batch(records, compression=codec))
    assert scan(batch, 0, subscription=name) == [Scanned(0, 1), Scanned(4, 4)]
    assert scan(batch, 0, subscription=b"other") == [Scanned(0, 0)]
    assert scan(batch, 0) == [Scanned(0, 4)]


@pytest.mark.parametrize(
    "value", [b"abc", b"-5", b"99999999999999999", b"soon", b"", None, b"1.5", b"1" * 64]
)
@pytest.mark.parametrize("name", TIMES)
def test_a_time_that_can_not_be_read_is_told_and_not_passed_over(name: str, value: bytes | None) -> None:
    records = [Record(0, NOW, None, b"", [(name, value)]), Record(1, NOW, None, b"", [(name, b"7")])]
    first, _ = scan(bytes(encode_batch(records)), 0)
    assert first == Scanned(0, 0, expires_at_ms=UNREADABLE)
    assert name in (unreadable_time([("trace", b"x"), (name, b"7"), (name, value)]) or "")
    assert unreadable_time([(name, b"7"), ("trace", value)]) is None


def offsets_of(entry: Scanned) -> range:
    return range(entry.first, entry.last + 1)


def test_an_entry_of_a_scan_is_an_entry_of_a_queue() -> None:
    assert Scanned._fields == QueueEntry._fields
    assert Scanned._field_defaults == QueueEntry._field_defaults


def plain(base: int, count: int, codec: int = 0, **fields: int) -> bytes:
    records = [Record(base + n, NOW, b"k", b"v" * 50) for n in range(count)]
    return bytes(encode_batch(records, base_offset=base, compression=codec, **fields))


@pytest.mark.parametrize("codec", CODECS)
def test_a_thousand_plain_batches_are_one_entry(codec: int) -> None:
    data = b"".join(plain(7 + 3 * n, 3, codec) for n in range(1000))
    assert scan(data, 0) == [(7, 3006, None, None, 0, 0)]
    assert scan(data, 1500) == [(1500, 3006, None, None, 0, 0)]
    assert scan(data, 3007) == []


def test_offsets_that_do_not_exist_are_in_no_entry() -> None:
    control = plain(4, 1, attributes=batches.CONTROL)
    compacted = encode_batch(
        [Record(7, NOW, b"a", b"1"), Record(8, NOW, b"b", b"1")], base_offset=5, last_offset_delta=9
    )
    empty = encode_batch([], base_offset=15, last_offset_delta=4)
    data = plain(0, 4) + control + compacted + empty + plain(20, 2)
    assert [entry[:2] for entry in scan(data, 0)] == [(0, 3), (7, 8), (20, 21)]


@pytest.mark.parametrize("codec", CODECS)
def test_a_delayed_message_stands_alone_between_plain_ones(codec: int) -> None:
    records = [Record(n, NOW + n, None, b"v") for n in range(5)]
    records[2] = records[2]._replace(headers=[("postroad-delay-ms", b"5000")])
    data = bytes(encode_batch(records, compression=codec)) + plain(5, 3)
    assert scan(data, 0) == [Scanned(0, 1), Scanned(2, 2, deliver_at_ms=NOW + 5002), Scanned(3, 7)]


def test_the_later_of_both_delays_holds() -> None:
    both = [("postroad-deliver-at", b"%d" % (NOW + 50)), ("postroad-delay-ms", b"70")]
    data = bytes(encode_batch([Record(0, NOW, None, b"", both), Record(1, NOW - 60, None, b"", both)]))
    assert [entry.deliver_at_ms for entry in scan(data, 0)] == [NOW + 70, NOW + 50]


def test_a_delay_counts_from_the_brokers_time_where_that_stands() -> None:
    batch = encode_batch([Record(0, 5, None, b"", [("postroad-delay-ms", b"10")])])
    batches.stamp_append_time(memoryview(batch), 0, len(batch), NOW)
    assert scan(bytes(batch), 0) == [Scanned(0, 0, deliver_at_ms=NOW + 10)]


def test_long_keys_and_tenants_are_kept_as_digests() -> None:
    record = Record(0, NOW, b"k" * 17, b"", [("tenant", b"t" * 500)])
    (entry,) = scan(bytes(encode_batch([record])), 0, keys=True, tenant_header=b"tenant")
    assert entry[2:4] == (short(b"k" * 17), short(b"t" * 500))
    (entry,) = scan(bytes(encode_batch([record._replace(key=b"k" * 16)])), 0, keys=True)
    assert entry.key == b"k" * 16


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_cannot_be_read_is_plain(codec: int) -> None:
    named = [("postroad-delay-ms", b"9")]
    batch = encode_batch([Record(n, NOW, b"k", b"v", named) for n in range(9)], compression=codec)
    batch[batches.HEADER_BYTES :] = random.Random(codec).randbytes(len(batch) - batches.HEADER_BYTES)
    data = bytes(batch) + plain(9, 1)
    for keys in (False, True):
        assert scan(data, 2, keys=keys, tenant_header=b"t")[0][:2] == (2, 8 if keys else 9)


def test_a_bomb_is_plain() -> None:
    bomb = encode_batch([Record(0, NOW, None, bytes(101 * 1024 * 1024))], compression=4)
    assert scan(bytes(bomb), 0) == [Scanned(0, 0)]


def test_records_whose_offsets_do_not_rise_are_plain() -> None:
    named = [("postroad-delay-ms", b"9")]
    records = [Record(offset, NOW, b"k", b"v", named) for offset in (2, 1, 0)]
    data = bytes(encode_batch(records, base_offset=0, last_offset_delta=2))
    assert scan(data, 0, keys=True) == [Scanned(0, 2)]


@settings(max_examples=300, deadline=None)
@given(
    stretch=stretches(),
    seed=st.integers(0, 2**32),
    keys=st.booleans(),
    tenant_header=st.sampled_from([None, b"tenant"]),
)
def test_damaged_records_never_raise_and_stay_in_order(
    stretch: list[bytes], seed: int, keys: bool, tenant_header: bytes | None
) -> None:
    dice = random.Random(seed)
    damaged = []
    for batch in stretch:
        mutant = bytearray(batch)
        for _ in range(dice.randrange(3) if len(mutant) > batches.HEADER_BYTES else 0):
            mutant[dice.randrange(batches.HEADER_BYTES, len(mutant))] = dice.randrange(256)
        damaged.append(bytes(mutant))
    headers = [batches.read_header(batch) for batch in damaged]
    found = scan(b"".join(damaged), 0, keys=keys, tenant_header=tenant_header)
    assert all(entry.first <= entry.last for entry in found)
    assert all(left.last < right.first for left, right in pairwise(found))
    if found:
        assert headers[0].base_offset <= found[0].first
        assert found[-1].last <= headers[-1].last_offset


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=300), keys=st.booleans())
def test_any_bytes_can_be_scanned(data: bytes, keys: bool) -> None:
    assert scan(data, 0, keys=keys, tenant_header=b"t") is not None
    assert scan(data, 0) is not None


def test_a_cut_batch_ends_the_stretch() -> None:
    data = plain(0, 2) + plain(2, 2)
    assert scan(data[:-1], 0) == [Scanned(0, 1)]


@given(data=st.data(), keys=st.booleans())
def test_what_was_aborted_is_left_out(data: st.DataObject, keys: bool) -> None:
    """Batches of two producers, in transactions and outside of them; plain ones are never asked about."""
    stretch, kept, aborted, offset = [], [], set(), data.draw(st.integers(0, 100))
    first = offset
    for size in data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=8)):
        producer_id, is_transactional = data.draw(st.integers(5, 6)), data.draw(st.booleans())
        records = [Record(offset + n, NOW, b"k", b"v", data.draw(headers)) for n in range(size)]
        batch = encode_batch(
            records,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            attributes=batches.TRANSACTIONAL if is_transactional else 0,
            compression=data.draw(st.sampled_from(CODECS)),
        )
        stretch.append(bytes(batch))
        if is_transactional and data.draw(st.booleans()):
            aborted.add((producer_id, offset))
        else:
            kept.append(bytes(batch))
        offset += size
    found = scan(b"".join(stretch), first, keys=keys, is_aborted=lambda *batch: batch in aborted)
    assert found == naive(kept, first, keys, None)
