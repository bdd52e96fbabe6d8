"""`postroad backup`: what is stored, not stored twice, and refused, and what a restore brings back."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition

from postroad.backups import manifest as manifests
from postroad.backups.manifest import Manifest
from postroad.backups.target import open_target
from postroad.testing import Node, node
from tests.backups.lags import call
from tests.clients.confluent import consumer, producer, read, send_all
from tests.clients.wait import PATIENCE_S, until
from tests.secure_node import secure_node


@pytest.fixture(scope="module")
def running() -> Iterator[Node]:
    with node() as started:
        yield started


@pytest.fixture
def where(tmp_path: Path) -> str:
    return str(tmp_path / "backups")


def back_up(running: Node, where: str) -> Any:
    return json.loads(call("backup", "create", where, "--json", bootstrap=running.bootstrap))


def manifest_of(where: str, name: str) -> Manifest:
    return manifests.decode(name, (Path(where) / manifests.path_of(name)).read_bytes())


def parts(where: str) -> list[Path]:
    return [path for path in Path(where, "parts").rglob("*") if path.is_file()]


def publish(running: Node, topic: str, count: int, size: int = 100, first: int = 0) -> None:
    values = (b"%d " % number + os.urandom(size) for number in range(first, first + count))
    send_all(producer(running.bootstrap), topic, ({"value": value} for value in values))


def restored(tmp_path: Path, where: str, *options: str, name: str = "restored") -> Node:
    home = tmp_path / name
    home.mkdir()
    call("backup", "restore", where, "--data", str(home / "data"), *options)
    return Node(home)


def test_what_was_stored_once_is_not_stored_again(running: Node, where: str) -> None:
    call("topic", "create", "large", bootstrap=running.bootstrap)
    publish(running, "large", 30, size=100_000)
    first = back_up(running, where)
    assert first["new_bytes"] > 3_000_000
    again = back_up(running, where)
    assert (again["new_bytes"], again["new_parts"]) == (0, 0)
    publish(running, "large", 3, first=30)
    third = back_up(running, where)
    assert 300 < third["new_bytes"] < 10_000
    copies = {log.topic: log for log in manifest_of(where, third["backup"]).logs}
    assert [(part.first, part.next) for part in copies["large"].parts] == [(0, 30), (30, 33)]
    assert json.loads(call("backup", "list", where, "--json"))[0]["backup"] == first["backup"]


def test_small_parts_are_put_together(running: Node, where: str) -> None:
    call("topic", "create", "small", bootstrap=running.bootstrap)
    for number in range(3):
        publish(running, "small", 2, first=2 * number)
        made = back_up(running, where)
    (copy,) = (log for log in manifest_of(where, made["backup"]).logs if log.topic == "small")
    assert [(part.first, part.next) for part in copy.parts] == [(0, 6)]


def test_backup_is_private(running: Node, where: str) -> None:
    back_up(running, where)
    for path in parts(where):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(where).stat().st_mode) == 0o700


def test_topic_comes_back_with_configs_start_and_end(running: Node, where: str, tmp_path: Path) -> None:
    config = ("--config", "retention.ms=-1", "--config", "segment.bytes=1048576")
    call("topic", "create", "kept", "--partitions", "2", *config, bootstrap=running.bootstrap)
    publish(running, "kept", 20)
    with consumer(running.bootstrap) as source:
        ends = [source.get_watermark_offsets(TopicPartition("kept", p), PATIENCE_S)[1] for p in (0, 1)]
    delete_below(running, "kept", 0, 3)
    delete_below(running, "kept", 1, ends[1])
    back_up(running, where)
    started = restored(tmp_path, where)
    try:
        started.start()
        with consumer(started.bootstrap) as source:
            found = [source.get_watermark_offsets(TopicPartition("kept", p), PATIENCE_S) for p in (0, 1)]
        assert found == [(min(3, ends[0]), ends[0]), (ends[1], ends[1])]
        described = call("topic", "describe", "kept", bootstrap=started.bootstrap)
        assert "retention.ms" in described
        publish(started, "kept", 5)
    finally:
        started.stop()


def delete_below(running: Node, topic: str, partition: int, offset: int) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    for done in admin.delete_records([TopicPartition(topic, partition, offset)]).values():
        done.result(30)


def test_compacted_topic_comes_back_with_the_last_value_of_each_key(
    running: Node, where: str, tmp_path: Path
) -> None:
    config = ["--config", "cleanup.policy=compact", "--config", "segment.bytes=16384"]
    config += ["--config", "min.cleanable.dirty.ratio=0.01"]
    call("topic", "create", "latest", *config, bootstrap=running.bootstrap)
    values = [(b"k%d" % (number % 5), b"%d" % number + b"x" * 500) for number in range(200)]
    through = producer(running.bootstrap, batch_num_messages=10)
    send_all(through, "latest", ({"key": key, "value": value} for key, value in values))
    back_up(running, where)
    send_all(producer(running.bootstrap), "latest", ({"key": key, "value": b"new"} for key, _ in values[:3]))
    back_up(running, where)
    started = restored(tmp_path, where)
    try:
        started.start()
        send_all(producer(started.bootstrap), "latest", [{"key": b"end", "value": b"end"}])
        with consumer(started.bootstrap) as source:
            source.assign([TopicPartition("latest", 0, 0)])
            last: dict[bytes, bytes] = {}
            while b"end" not in last:
                last |= {message.key(): message.value() for message in read(source, 1)}
        assert last == {**dict(values), **{key: b"new" for key, _ in values[:3]}, b"end": b"end"}
    finally:
        started.stop()


# --- what is wrong


def test_backup_of_another_cluster_is_not_mixed_with_it(running: Node, where: str) -> None:
    back_up(running, where)
    with node() as other:
        said = call("backup", "create", where, bootstrap=other.bootstrap, code=1)
    assert "backups of another cluster" in said


@pytest.mark.parametrize("damage", ["grown", "cut", "changed", "missing"])
def test_damaged_part_is_named_and_not_restored(
    running: Node, where: str, tmp_path: Path, damage: str
) -> None:
    call("topic", "create", f"hurt-{damage}", bootstrap=running.bootstrap)
    publish(running, f"hurt-{damage}", 10)
    made = back_up(running, where)
    (copy,) = (log for log in manifest_of(where, made["backup"]).logs if log.topic == f"hurt-{damage}")
    path = Path(where) / copy.parts[0].path
    content = path.read_bytes()
    if damage == "grown":  # a sparse file of a terabyte: it is not read
        os.truncate(path, 1 << 40)
    elif damage == "cut":
        path.write_bytes(content[:-7])
    elif damage == "changed":
        path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    else:
        path.unlink()
    said = call("backup", "verify", where, code=1)
    reason = {
        "grown": "has 1099511627776 bytes instead of",
        "cut": "bytes instead of",
        "changed": "SHA-256 does not match",
        "missing": "is missing",
    }[damage]
    assert f"hurt-{damage}/0: {copy.parts[0].path}" in said
    assert reason in said
    data = tmp_path / "data"
    assert reason in call("backup", "restore", where, "--data", str(data), code=1)
    assert "restore that was not finished" in refused(data)


def refused(data: Path) -> str:
    """What a node says that does not start there."""
    command = [sys.executable, "-m", "postroad", "serve", "--data", str(data), "--kafka", "127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    return done.stderr


def test_hostile_manifest_is_refused_before_anything_is_written(
    running: Node, where: str, tmp_path: Path
) -> None:
    name = back_up(running, where)["backup"]
    path = Path(where) / manifests.path_of(name)
    outer = json.loads(path.read_bytes())
    outer["manifest"]["logs"][0]["parts"] = [[0, 1, 10, "../../../../etc/passwd", 0]]
    inner = json.dumps(outer["manifest"]).encode()
    sealed = json.dumps({"sha256": manifests.sha256_of(inner), "manifest": "X"}).encode()
    path.write_bytes(sealed.replace(b'"X"', inner))
    for command in (["verify", where], ["restore", where, "--data", str(tmp_path / "data")]):
        assert "is not the name of a part" in call("backup", *command, code=1)
    assert not (tmp_path / "data").exists()
    wrong_name = ("backup", "verify", where, "--backup", "../../etc/passwd")
    assert "is not the name of a backup" in call(*wrong_name, code=1)


def test_directory_of_a_node_is_not_restored_into(running: Node, where: str) -> None:
    back_up(running, where)
    said = call("backup", "restore", where, "--data", str(running.data_dir), code=1)
    assert "is a node's data directory" in said


def test_place_without_backups_says_so(tmp_path: Path) -> None:
    for command in (["verify"], ["verify", "--all"], ["restore", "--data", str(tmp_path / "data")]):
        assert "there is no backup" in call("backup", command[0], str(tmp_path), *command[1:], code=1)


# --- secrets


def test_secrets_are_sealed_and_opened_with_the_master_key(where: str, tmp_path: Path) -> None:
    with secure_node(tmp_path) as secured:
        secured.call("user", "create", "shop")
        secured.call("topic", "create", "orders")
        secured.call("acl", "allow", "shop", "--consume", "orders")
        secured.call("backup", "create", where)
        key = tmp_path / "key"
        key.write_bytes((secured.data_dir / "master.key").read_bytes())
    stored = b"".join(path.read_bytes() for path in parts(where))
    assert b"users/shop" in stored
    assert b"stored_key" not in stored
    data = str(tmp_path / "restored")
    assert "name its file with --master-key-file" in call("backup", "restore", where, "--data", data, code=1)
    wrong = tmp_path / "wrong"
    wrong.write_text("ab" * 32)
    given = ("backup", "restore", where, "--data", data, "--master-key-file")
    assert "sealed with another master key" in call(*given, str(wrong), code=1)
    call(*given, str(key))
    assert (Path(data) / "master.key").read_bytes() == key.read_bytes()


def test_whoever_may_not_act_as_a_node_gets_no_backup(where: str, tmp_path: Path) -> None:
    with secure_node(tmp_path) as secured:
        password = tmp_path / "password"
        password.write_text("correct horse\n")
        secured.call("user", "create", "spy", "--new-password-file", str(password))
        given = ("--user", "spy", "--password-file", str(password))
        said = secured.call(*given, "backup", "create", where, code=1).output
    assert "Cluster authorization failed" in said or "not authorized" in said.lower()
    assert not Path(where).exists()


# --- object stores


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (
        ("AWS_ENDPOINT_URL", f"http://{host}:{port}"),
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "any"),
        ("AWS_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    try:
        boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1").create_bucket(
            Bucket="backups"
        )
        yield f"s3://backups/{uuid4().hex}"
    finally:
        server.stop()


def test_backup_in_an_object_store(running: Node, bucket: str, tmp_path: Path) -> None:
    call("topic", "create", "far", bootstrap=running.bootstrap)
    publish(running, "far", 10)
    made = back_up(running, bucket)
    assert back_up(running, bucket)["new_bytes"] == 0
    assert "is whole" in call("backup", "verify", bucket)
    started = restored(tmp_path, bucket, "--backup", made["backup"])
    try:
        started.start()
        with consumer(started.bootstrap) as source:
            assert source.get_watermark_offsets(TopicPartition("far", 0), PATIENCE_S) == (0, 10)
    finally:
        started.stop()
    target = open_target(bucket)
    (part,) = next(log for log in read_manifest(bucket, made["backup"]).logs if log.topic == "far").parts
    target.put(part.path, b"something else")
    assert f"far/0: {part.path} has 14 bytes" in call("backup", "verify", bucket, code=1)
    target.delete(part.path)
    target.delete(part.path)
    assert f"far/0: {part.path} is missing" in call("backup", "verify", bucket, code=1)


def read_manifest(where: str, name: str) -> Manifest:
    content = open_target(where).get(manifests.path_of(name))
    assert content is not None
    return manifests.decode(name, content)


def test_object_store_that_does_not_answer_is_an_error(
    running: Node, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = call("backup", "create", "s3://nothing/here", bootstrap=running.bootstrap, code=1)
    assert "s3://nothing/here" in said
    assert "can't be" in said
    assert "can't be used" in call("backup", "list", "gopher://there", code=1)


# --- kill -9

ATTEMPTS = 20  # it may be over before it is killed


def command_of(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "postroad", *arguments], stdout=subprocess.DEVNULL)


def killed_when(holds: Callable[[], bool], *arguments: str) -> None:
    """The command is killed as soon as that holds."""
    with command_of(*arguments) as command:
        until(lambda: holds() or command.poll() is not None, "it is at work", PATIENCE_S, pause_s=0)
        command.send_signal(signal.SIGKILL)


def test_killed_backup_is_gone_on_with(running: Node, tmp_path: Path) -> None:
    call("topic", "create", "long", "--partitions", "2", bootstrap=running.bootstrap)
    for _ in range(5):
        publish(running, "long", 60, size=100_000)
    for attempt in range(ATTEMPTS):
        where = str(tmp_path / f"backups-{attempt}")
        command = ("backup", "create", where, "--bootstrap", running.bootstrap)
        killed_when(lambda place=where: len(parts(place)) > 1, *command)  # type: ignore[misc]
        if not Path(where, "manifests").exists():
            break
    else:
        pytest.fail("it was always over before it was killed")
    stored = sum(path.stat().st_size for path in parts(where) if path.suffix != ".tmp")
    assert "there is no backup" in call("backup", "verify", where, code=1)
    made = back_up(running, where)
    assert made["new_bytes"] <= made["bytes"] - stored
    assert "is whole" in call("backup", "verify", where)
    assert not Path(where, manifests.UNFINISHED).exists()


def test_killed_restore_is_begun_anew_and_no_node_starts_before(
    running: Node, where: str, tmp_path: Path
) -> None:
    back_up(running, where)
    for attempt in range(ATTEMPTS):
        home = tmp_path / f"restored-{attempt}"
        home.mkdir()
        data = home / "data"
        mark = data / "restoring"
        killed_when(mark.exists, "backup", "restore", where, "--data", str(data))
        if mark.exists():
            break
    else:
        pytest.fail("it was always over before it was killed")
    assert "Give the same `postroad backup restore` again" in refused(data)
    call("backup", "restore", where, "--data", str(data))
    started = Node(home)
    started.start()
    started.stop()
