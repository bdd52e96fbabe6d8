"""Batches of a log, and copies of logs, as backups have them."""

from __future__ import annotations

from postroad.backups.manifest import LogCopy, Manifest, Part, StorePart, sha256_of
from postroad.cluster.ids import id_text, make_id
from postroad.wire import batch as batches
from postroad.wire.backup import LogFacts
from postroad.wire.batch import HEADER
from tests.faults.raw import batch_of

TOPIC = make_id(bytes(range(16)))
CLUSTER = id_text(make_id(bytes(range(1, 17))))


def placed(base: int, epoch: int = 0, count: int = 1) -> bytes:
    """A batch as a log has it, at this offset."""
    made = bytearray(batch_of(*[b"x" * 20] * count))
    _, length, _, *rest = HEADER.unpack_from(made)
    HEADER.pack_into(made, 0, base, length, epoch, *rest)
    batches.stamp_crc(made)
    return bytes(made)


def facts(start: int, end: int, epochs: list[tuple[int, int]] | None = None, purged: int = 0) -> LogFacts:
    return LogFacts(TOPIC, 0, False, TOPIC, start, end, purged, epochs or [(0, 0)])


def part(first: int, next_offset: int, size: int = 2_000_000, epoch: int = 0) -> Part:
    return Part(first, next_offset, size, sha256_of(f"{first} {next_offset}".encode()), epoch)


def copy(*parts: Part, start: int = 0, end: int | None = None) -> LogCopy:
    end = end if end is not None else (parts[-1].next if parts else start)
    return LogCopy("orders", id_text(TOPIC), 0, start, end, parts=parts)


def manifest(*logs: LogCopy) -> Manifest:
    return Manifest(1, CLUSTER, 1_795_000_000_123, "0.1.0", logs, StorePart(10, sha256_of(b"store")))
