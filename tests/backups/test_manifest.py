"""A manifest is read as it was written, and refused if anything else was made of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from postroad.backups import manifest as manifests
from postroad.backups.errors import BackupDamaged
from postroad.backups.manifest import LogCopy, Part, StorePart
from tests.backups.logs import copy, manifest, part


def test_manifest_is_read_as_it_was_written() -> None:
    written = manifest(copy(part(0, 10), part(12, 20), end=25))
    assert manifests.decode("one", manifests.encode(written)) == written
    name = manifests.name_of(written)
    assert name.startswith("20261118T")
    assert manifests.path_of(name) == f"manifests/{name}.json"
    assert manifests.names([f"manifests/{name}.json", "manifests/other.txt"]) == [name]


def test_changed_byte_of_a_manifest_is_found() -> None:
    written = manifests.encode(manifest(copy(part(0, 10))))
    with pytest.raises(BackupDamaged, match="SHA-256 does not match"):
        manifests.decode("one", written.replace(b'"orders"', b'"orderz"'))


@pytest.mark.parametrize("kept", [0, 1, 40, 200])
def test_cut_manifest_is_refused(kept: int) -> None:
    with pytest.raises(BackupDamaged, match="can't be read"):
        manifests.decode("one", manifests.encode(manifest(copy(part(0, 10))))[:kept])


def hostile(**changes: Any) -> bytes:
    """A manifest with a right checksum, in which a part or the log was changed."""
    known = copy(part(0, 10))
    changed_part = {key: value for key, value in changes.items() if key in Part.__struct_fields__}
    changed_log = {key: value for key, value in changes.items() if key in LogCopy.__struct_fields__}
    parts = tuple(msgspec.structs.replace(each, **changed_part) for each in known.parts)
    return manifests.encode(manifest(msgspec.structs.replace(known, **{"parts": parts, **changed_log})))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sha256": "../../../etc/passwd"}, "not the name of a part"),
        ({"sha256": "../" * 21 + "a"}, "not the name of a part"),
        ({"sha256": "A" * 64}, "not the name of a part"),
        ({"topic_id": "../../../../../../../x"}, "no topic id"),
        ({"topic_id": "orders"}, "no topic id"),
        ({"topic_id": "AAAAAAAAAAAAAAAAAAAAAB"}, "no topic id"),  # bits that no id has
        ({"last_epoch": 1 << 31}, "can't end in leader epoch"),
        ({"last_epoch": -2}, "can't end in leader epoch"),
        ({"index": -1}, "no partition -1"),
        ({"index": 10**9}, "no partition"),
        ({"bytes": 0}, "can't have 0 bytes"),
        ({"bytes": 1 << 40}, "can't have"),
        ({"first": -1}, "out of place"),
        ({"next": 0}, "out of place"),
        ({"next": 11}, "out of place"),
        ({"start": 11}, "can't reach from offset 11 to 10"),
        ({"end": 1 << 63}, "can't reach"),
        ({"start": 10}, "out of place"),
        ({"parts": (part(0, 8), part(7, 10))}, "out of place"),
        ({"parts": (part(8, 10), part(0, 5))}, "out of place"),
    ],
)
def test_hostile_manifest_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BackupDamaged, match=said):
        manifests.decode("one", hostile(**changes))


def test_log_that_is_there_twice_is_refused() -> None:
    with pytest.raises(BackupDamaged, match="orders/0 is in it twice"):
        manifests.decode("one", manifests.encode(manifest(copy(part(0, 10)), copy(part(0, 10)))))


def test_manifest_of_a_newer_version_or_with_a_wrong_store_is_refused() -> None:
    newer = msgspec.structs.replace(manifest(), version=2)
    with pytest.raises(BackupDamaged, match="of version 2"):
        manifests.decode("one", manifests.encode(newer))
    wrong = msgspec.structs.replace(manifest(), store=StorePart(10, "../store"))
    with pytest.raises(BackupDamaged, match="not the name of a part"):
        manifests.decode("one", manifests.encode(wrong))


@pytest.mark.parametrize("name", ["", "..", "../../etc/passwd", "20261119T175416.123Z-abcdef/../x", "latest"])
def test_name_that_is_no_backups_names_no_path(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a backup"):
        manifests.path_of(name)
