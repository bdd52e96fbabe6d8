"""kcat (librdkafka from the shell): publish, consume, query, groups."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from .confluent import EVERY_COMPRESSION, producer, send_all, send_values
from .conftest import Broker, TopicMaker
from .wait import PATIENCE_S, until

pytestmark = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")

Kcat = Callable[..., str]


@pytest.fixture
def kcat(broker: Broker) -> Kcat:
    """`kcat("-L", …)` gives what it prints; it must succeed."""

    def run(*arguments: str, stdin: str = "") -> str:
        command = ["kcat", "-b", broker.bootstrap, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def consume(kcat: Kcat, topic: str, *arguments: str) -> list[dict[str, object]]:
    """All messages from the asked place to the end, as kcat's JSON."""
    lines = kcat("-C", "-q", "-J", "-e", "-t", topic, *arguments)
    return [json.loads(line) for line in lines.splitlines()]


@pytest.mark.parametrize("compression", EVERY_COMPRESSION)
def test_lines_keys_and_headers_come_back(kcat: Kcat, topic: str, compression: str) -> None:
    lines = "".join(f"key-{n}:value-{n}\n" for n in range(100))
    headers = ["-H", "colour=blue", "-H", "size=9"]
    kcat("-P", "-t", topic, "-K", ":", "-z", compression, *headers, stdin=lines)
    messages = consume(kcat, topic, "-o", "beginning")
    assert [message["offset"] for message in messages] == list(range(100))
    assert [(m["key"], m["payload"]) for m in messages] == [(f"key-{n}", f"value-{n}") for n in range(100)]
    assert messages[0]["headers"] == ["colour", "blue", "size", "9"]
    assert abs(int(str(messages[0]["ts"])) - time.time() * 1000) < 60_000


def test_empty_value_is_null_when_asked_for(kcat: Kcat, topic: str) -> None:
    kcat("-P", "-t", topic, "-K", ":", "-Z", stdin="key:\n")
    (message,) = consume(kcat, topic)
    assert (message["key"], message["payload"]) == ("key", None)


def test_file_is_one_message(kcat: Kcat, topic: str, tmp_path: Path) -> None:
    content = "line\n" * 1000
    (tmp_path / "file").write_text(content)
    kcat("-P", "-t", topic, str(tmp_path / "file"))
    (message,) = consume(kcat, topic)
    assert message["payload"] == content


def test_consumes_from_offset_tail_and_time(kcat: Kcat, broker: Broker, topic: str) -> None:
    base = int(time.time() * 1000) - 3_600_000
    through = producer(broker.bootstrap)
    for n in range(20):
        send_all(through, topic, [{"value": str(n).encode(), "timestamp": base + n * 1000}])

    def offsets(*arguments: str) -> list[object]:
        return [message["offset"] for message in consume(kcat, topic, "-p", "0", *arguments)]

    assert offsets("-o", "15") == [15, 16, 17, 18, 19]
    assert offsets("-o", "-3") == [17, 18, 19]
    assert offsets("-o", f"s@{base + 16_500}") == [17, 18, 19]
    assert offsets("-o", f"s@{base + 5000}", "-o", f"e@{base + 8000}") == [5, 6, 7]


def test_offsets_are_queried_by_time(kcat: Kcat, broker: Broker, topic: str) -> None:
    base = int(time.time() * 1000) - 3_600_000
    through = producer(broker.bootstrap)
    for n in range(5):
        send_all(through, topic, [{"value": b"v", "timestamp": base + n * 1000}])
    assert kcat("-Q", "-t", f"{topic}:0:{base + 2500}").split()[-1] == "3"
    assert kcat("-Q", "-t", f"{topic}:0:-1").split()[-1] == "5"
    assert kcat("-Q", "-t", f"{topic}:0:-2").split()[-1] == "0"


def test_metadata_names_nodes_topics_and_partitions(
    kcat: Kcat, broker: Broker, new_topic: TopicMaker
) -> None:
    topic = new_topic(partitions=3)
    metadata = json.loads(kcat("-L", "-J", "-t", topic))
    assert [node["name"] for node in metadata["brokers"]] == [broker.bootstrap]
    (seen,) = metadata["topics"]
    assert [partition["partition"] for partition in seen["partitions"]] == [0, 1, 2]
    assert {partition["leader"] for partition in seen["partitions"]} == {metadata["brokers"][0]["id"]}


def test_topic_is_created_by_the_first_message(kcat: Kcat, unused_name: str) -> None:
    kcat("-P", "-t", unused_name, stdin="first\n")
    assert [message["payload"] for message in consume(kcat, unused_name)] == ["first"]


def test_idempotent_producing(kcat: Kcat, topic: str) -> None:
    kcat("-P", "-t", topic, "-X", "enable.idempotence=true", stdin="".join(f"{n}\n" for n in range(500)))
    assert [message["payload"] for message in consume(kcat, topic)] == [str(n) for n in range(500)]


def test_group_goes_on_where_it_stopped(kcat: Kcat, broker: Broker, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 10)
    group_mode = ["-q", "-X", "auto.offset.reset=earliest", "-G", group, topic]
    assert kcat("-e", "-c", "6", *group_mode).split() == ["0", "1", "2", "3", "4", "5"]
    assert kcat("-e", *group_mode).split() == ["6", "7", "8", "9"]


def test_two_members_share_the_partitions(
    broker: Broker, new_topic: TopicMaker, group: str, tmp_path: Path
) -> None:
    topic, files = new_topic(partitions=4), [tmp_path / "one", tmp_path / "two"]
    with ExitStack() as running:
        for file in files:
            running.enter_context(member_writing_to(file, broker, topic, group))
        until(lambda: all(_assigned(file) == 2 for file in files), "each member has two partitions")
        for partition in range(4):
            send_values(broker.bootstrap, topic, 5, partition)
        until(lambda: sum(map(len, map(_read_from, files))) == 20, "all 20 messages")
    shares = [set(_read_from(file)) for file in files]
    assert [len(share) for share in shares] == [2, 2]
    assert shares[0] | shares[1] == {"0", "1", "2", "3"}


@contextmanager
def member_writing_to(file: Path, broker: Broker, topic: str, group: str) -> Iterator[None]:
    """A kcat process that writes a line "message PARTITION" for each message, and its own log, to `file`."""
    quick = [
        "-X",
        "heartbeat.interval.ms=200",
        "-X",
        "session.timeout.ms=6000",
        "-X",
        "auto.offset.reset=earliest",
    ]
    command = ["kcat", "-b", broker.bootstrap, "-u", *quick, "-f", "message %p\\n", "-G", group, topic]
    with file.open("w") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _read_from(file: Path) -> list[str]:
    """The partition of each message that the member has read."""
    return [line.split()[1] for line in _whole_lines(file) if line.startswith("message ")]


def _assigned(file: Path) -> int:
    """How many partitions kcat's last log line about its assignment names."""
    lines = [line for line in _whole_lines(file) if "assigned:" in line or "revoked:" in line]
    return lines[-1].count("[") if lines and "assigned:" in lines[-1] else 0


def _whole_lines(file: Path) -> list[str]:
    """kcat writes a line piece by piece."""
    return file.read_text().split("\n")[:-1]
