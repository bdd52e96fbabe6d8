"""The manifest: all that one backup holds, with a checksum of each part.

    manifests/<time>-<6 hex digits>.json   one for each backup that is complete
    unfinished.json                        the same, of a backup that was not finished: the next one goes on
    parts/<2 digits>/<sha256>              batches of one log, or the keys of the store; by what they hold

    {"sha256": "…", "manifest": {"version": 1, "cluster": "…", "created_ms": …, "store": {…}, "logs": […]}}

The outer object holds the SHA-256 of the bytes of the inner one, so a manifest that was cut or changed by
accident is refused. Part files are named by their content: a part that several backups share lies there once,
is never changed, and no text of a manifest ever becomes a path.

Valid. M1 Parts of a log lie in order and don't overlap; each begins at its first batch and ends behind its
last one. M2 start ≤ end; the parts reach from at or below the start to at most the end. What the parts
leave out between start and end was not there any more: compaction, or deletion, took it. M3 No log is twice.

Crash. Parts are stored first, durably, the manifest last: it never names a part that is not there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from postroad.backups.errors import BackupDamaged
from postroad.cluster.ids import id_bytes

VERSION: Final = 1
UNFINISHED: Final = "unfinished.json"
MANIFESTS: Final = "manifests/"
PARTS: Final = "parts/"
OFFSET_MAX: Final = (1 << 63) - 1
EPOCH_MAX: Final = (1 << 31) - 1
PART_BYTES_MAX: Final = 1 << 31  # far above what `create` makes
INDEX_MAX: Final = 10_000  # partitions of a topic
BYTES_MAX: Final = 256 * 1024 * 1024  # of a manifest

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_NAME: Final = re.compile(r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{6}")


class LogKey(NamedTuple):
    """Which log: a partition's messages, or its ledger."""

    topic_id: str
    index: int  # type: ignore[assignment]  # hides tuple.index
    is_ledger: bool


class Part(msgspec.Struct, frozen=True, array_like=True):
    """Batches of one log that follow each other; `last_epoch` is the leader epoch of the last one."""

    first: int
    next: int
    bytes: int
    sha256: str
    last_epoch: int

    @property
    def path(self) -> str:
        return part_path(self.sha256)


class LogCopy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a backup has of one log."""

    topic: str  # its name, for people
    topic_id: str
    index: int
    start: int
    end: int
    is_ledger: bool = False
    purged: int = 0
    parts: tuple[Part, ...] = ()

    @property
    def key(self) -> LogKey:
        return LogKey(self.topic_id, self.index, self.is_ledger)

    def __str__(self) -> str:
        return f"{'the ledger of ' if self.is_ledger else ''}{self.topic}/{self.index}"


class StorePart(msgspec.Struct, frozen=True):
    """The keys of the coordination store (`contents`)."""

    bytes: int
    sha256: str

    @property
    def path(self) -> str:
        return part_path(self.sha256)


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    version: int
    cluster: str  # its id
    created_ms: int
    by: str  # the version of Postroad that made it
    logs: tuple[LogCopy, ...]
    store: StorePart | None = None  # None: the backup is not finished
    sealed: bool = False  # some of the store's values need the master key

    @property
    def bytes(self) -> int:
        """How many bytes all its parts have, also those that other backups share."""
        return sum(part.bytes for part in self.parts()) + (self.store.bytes if self.store else 0)

    def parts(self) -> Iterator[Part]:
        for log in self.logs:
            yield from log.parts


class _Sealed(msgspec.Struct):
    sha256: str
    manifest: msgspec.Raw


def encode(manifest: Manifest) -> bytes:
    content = msgspec.json.encode(manifest)
    return msgspec.json.encode(_Sealed(sha256_of(content), msgspec.Raw(content)))


def decode(name: str, content: bytes) -> Manifest:
    """The manifest of this name. Raises BackupDamaged, which says what is wrong with it."""
    try:
        outer = msgspec.json.decode(content, type=_Sealed)
        inner = bytes(outer.manifest)
        if sha256_of(inner) != outer.sha256:
            raise BackupDamaged(f"the manifest {name} was changed or cut: its SHA-256 does not match")
        manifest = msgspec.json.decode(inner, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BackupDamaged(f"the manifest {name} can't be read: {error}") from None
    try:
        check(manifest)
    except ValueError as error:
        raise BackupDamaged(f"the manifest {name} is not valid: {error}") from None
    return manifest


def check(manifest: Manifest) -> None:
    """Raises ValueError if M1, M2 or M3 do not hold, or if a name in it is none."""
    if manifest.version != VERSION:
        raise ValueError(f"it is of version {manifest.version}, this Postroad reads version {VERSION}")
    _check_id("cluster", manifest.cluster)
    if manifest.store is not None:
        _check_part(manifest.store.sha256, manifest.store.bytes)
    seen: set[LogKey] = set()
    for log in manifest.logs:
        if log.key in seen:
            raise ValueError(f"{log} is in it twice")
        seen.add(log.key)
        _check_log(log)


def _check_log(log: LogCopy) -> None:
    _check_id("topic id", log.topic_id)
    if not 0 <= log.index < INDEX_MAX:
        raise ValueError(f"there is no partition {log.index}")
    if not 0 <= log.start <= log.end <= OFFSET_MAX or not 0 <= log.purged <= OFFSET_MAX:
        raise ValueError(f"{log} can't reach from offset {log.start} to {log.end}")
    last = 0
    for part in log.parts:
        _check_part(part.sha256, part.bytes)
        if not last <= part.first < part.next <= log.end or part.next <= log.start:
            raise ValueError(f"a part of {log} from {part.first} to {part.next} is out of place")
        if not -1 <= part.last_epoch <= EPOCH_MAX:
            raise ValueError(f"a part of {log} can't end in leader epoch {part.last_epoch}")
        last = part.next


def _check_part(sha256: str, size: int) -> None:
    if not _SHA256.fullmatch(sha256):
        raise ValueError(f"{sha256!r} is not the name of a part")
    if not 0 < size <= PART_BYTES_MAX:
        raise ValueError(f"a part can't have {size} bytes")


def _check_id(what: str, text: str) -> None:
    try:
        id_bytes(text)
    except ValueError:
        raise ValueError(f"{text!r} is no {what}") from None


def part_path(sha256: str) -> str:
    """Where the part lies; the text was checked to be a SHA-256."""
    assert _SHA256.fullmatch(sha256), sha256
    return f"{PARTS}{sha256[:2]}/{sha256}"


def is_part(path: str) -> bool:
    """Whether a part may lie there; whatever else people put beside them is theirs."""
    sha256 = path.rpartition("/")[2]
    return _SHA256.fullmatch(sha256) is not None and path == part_path(sha256)


def name_of(manifest: Manifest) -> str:
    """Names sort by time."""
    at = datetime.fromtimestamp(manifest.created_ms / 1000, UTC)
    time = at.strftime("%Y%m%dT%H%M%S.") + f"{manifest.created_ms % 1000:03}Z"
    return f"{time}-{sha256_of(encode(manifest))[:6]}"


def made_at(name: str) -> datetime:
    """When the backup of this name was made. Names of no real day count as the first one that there is."""
    try:
        return datetime.strptime(name.partition("Z")[0], "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def path_of(name: str) -> str:
    """Raises ValueError if that is no backup's name."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a backup; `postroad backup list` shows their names")
    return f"{MANIFESTS}{name}.json"


def names(paths: list[str]) -> list[str]:
    """The backups that these files are the manifests of, the oldest first; other files are passed over."""
    found = (path.removeprefix(MANIFESTS).removesuffix(".json") for path in paths)
    return sorted(name for name in found if _NAME.fullmatch(name))


def sha256_of(content: bytes | bytearray | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()
