"""A data directory belongs to one cluster and one node; in doubt nothing is touched."""

from __future__ import annotations

import pytest

from postroad.cluster.identity import FILE_NAME, Identity, check_identity, decode_identity, encode_identity
from postroad.errors import ConfigurationError

OURS = Identity(cluster_id="ours", node_id=1)


PATH = f"/data/{FILE_NAME}"


def test_what_was_written_is_read() -> None:
    assert decode_identity(encode_identity(OURS), PATH) == OURS


@pytest.mark.parametrize("content", [b"", b"{", b'{"cluster_id": 5}', b"\xff" * 10_000, b"[]"])
def test_a_broken_file_is_refused(content: bytes) -> None:
    with pytest.raises(ConfigurationError, match=rf"{PATH} can't be read .*Restore it from a backup"):
        decode_identity(content, PATH)


def test_a_file_of_a_newer_version_is_refused() -> None:
    newer = encode_identity(Identity(cluster_id="ours", node_id=1, version=2))
    with pytest.raises(ConfigurationError, match="newer Postroad"):
        decode_identity(newer, PATH)


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
