"""A data directory belongs to one cluster and one node; in doubt nothing is touched."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from postroad.cluster.identity import FILE_NAME, Identity, check_identity, read_identity, write_identity
from postroad.errors import ConfigurationError

OURS = Identity(cluster_id="ours", node_id=1)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert read_identity(tmp_path) is None
    write_identity(tmp_path, OURS)
    assert read_identity(tmp_path) == OURS
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize("content", [b"", b"{", b'{"cluster_id": 5}', b"\xff" * 10_000, b"[]"])
def test_a_broken_file_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(ConfigurationError, match="Restore it from a backup"):
        read_identity(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == content


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    write_identity(tmp_path, Identity(cluster_id="ours", node_id=1, version=2))
    with pytest.raises(ConfigurationError, match="newer Postroad"):
        read_identity(tmp_path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="can't be read"):
        read_identity(tmp_path)


@pytest.mark.parametrize(
    ("identity", "cluster_id", "has_logs"),
    [
        (None, None, False),  # a new node and a new cluster
        (None, "ours", False),  # a new node, or a crash before the file was written
        (OURS, "ours", False),
        (OURS, "ours", True),
    ],
)
def test_what_belongs_together_may_start(
    identity: Identity | None, cluster_id: str | None, has_logs: bool
) -> None:
    check_identity(identity, cluster_id=cluster_id, node_id=1, has_logs=has_logs)


@pytest.mark.parametrize(
    ("identity", "cluster_id", "node_id", "has_logs", "text"),
    [
        (OURS, None, 1, True, "store is empty, but this data directory belongs to cluster ours"),
        (OURS, None, 1, False, "store is empty"),
        (None, None, 1, True, "nobody knows whose they are"),
        (None, "ours", 1, True, "nobody knows whose they are"),
        (OURS, "theirs", 1, True, "belongs to cluster ours, the coordination store to theirs"),
        (OURS, "ours", 2, True, "belongs to node 1, but node.id is 2"),
    ],
)
def test_what_does_not_belong_together_may_not_start(
    identity: Identity | None, cluster_id: str | None, node_id: int, has_logs: bool, text: str
) -> None:
    with pytest.raises(ConfigurationError, match=text):
        check_identity(identity, cluster_id=cluster_id, node_id=node_id, has_logs=has_logs)
