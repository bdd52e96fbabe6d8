"""A report measures what a plain client put there, and says what it can't know."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from confluent_kafka import AcknowledgeType, Consumer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from postroad.cli.root import main
from postroad.errors import UnknownTopicOrPartition
from postroad.pipelines.errors import PipelineError
from postroad.testing import Node
from postroad.wire import header_names as names
from tests.spark import plain
from tests.spark.plain import Message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroad.pipelines.report import Reported

pytestmark = pytest.mark.spark_slow

START = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
HOSTILE = b'<script>alert("x")</script>'
BINARY = bytes(range(8))
PATIENCE_S = 30.0
NOBODY = "127.0.0.1:1"


class Made(NamedTuple):
    """A report of two topics, and what it says."""

    bootstrap: str
    orders: str
    jobs: str
    home: Path
    told: Reported

    def table(self, name: str) -> list[dict[str, Any]]:
        return pq.read_table(self.home / f"{name}.parquet").to_pylist()

    @property
    def page(self) -> str:
        return (self.home / "report.html").read_text()


def ms(minutes: float) -> int:
    return int((START + timedelta(minutes=minutes)).timestamp() * 1000)


def orders() -> list[Message]:
    """Three minutes: 6 messages, 3, none, 1; the first six created 40 ms before they were published."""
    created = [("ce_time", (START - timedelta(milliseconds=40)).isoformat().encode())]
    return [
        *(Message(b"x" * 90, b"ann", 0, created, ms(0)) for _ in range(6)),
        Message(b"y" * 200, HOSTILE, 1, time_ms=ms(1)),
        Message(None, BINARY, 1, time_ms=ms(1.5)),
        Message(b"z", None, 1, time_ms=ms(1.9)),
        Message(b"v" * 5000, b"bob", 1, time_ms=ms(3)),
    ]


@pytest.fixture(scope="module")
def made(spark: SparkSession, node: Node, tmp_path_factory: pytest.TempPathFactory) -> Made:
    from postroad.pipelines.report import ReportSettings, report

    orders_topic, jobs = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("orders", "jobs"))
    plain.create(node.bootstrap, orders_topic, 2)
    plain.create(node.bootstrap, jobs)
    plain.send(node.bootstrap, orders_topic, orders())
    commit(node.bootstrap, f"billing {jobs} <b>", {TopicPartition(orders_topic, 1, 1)})
    plain.send(node.bootstrap, jobs, plain.numbered(3))
    reject_first(node.bootstrap, f"workers-{jobs}", jobs)
    home = tmp_path_factory.mktemp("report")
    told = report(spark, ReportSettings(node.bootstrap, [orders_topic, jobs], str(home)))
    return Made(node.bootstrap, orders_topic, jobs, home, told)


def commit(bootstrap: str, group: str, topic_partitions: set[TopicPartition]) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=list(topic_partitions), asynchronous=False)
    consumer.close()


def reject_first(bootstrap: str, subscription: str, topic: str) -> None:
    """The first message is rejected and its dead letter there; the others are accepted."""
    configs = {"postroad.topics": topic, "share.auto.offset.reset": "earliest"}
    entries = [ConfigEntry(*each, incremental_operation=AlterConfigOpType.SET) for each in configs.items()]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ResourceType.GROUP, subscription, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
    settings = {"bootstrap.servers": bootstrap, "group.id": subscription, "log_level": 3}
    consumer = ShareConsumer(settings | {"share.acknowledgement.mode": "explicit"})
    consumer.subscribe([topic])
    settled, deadline = 0, time.monotonic() + PATIENCE_S
    while settled < 2:
        assert time.monotonic() < deadline
        for message in consumer.poll(timeout=1.0):
            fate = {b"0": AcknowledgeType.REJECT, b"1": AcknowledgeType.ACCEPT}.get(message.value())
            consumer.acknowledge(message, fate or AcknowledgeType.RELEASE)
            settled += fate is not None
        consumer.commit_sync(timeout=10)
    consumer.close()
    while f"{subscription}.dead" not in admin.list_topics(timeout=PATIENCE_S).topics:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    while not plain.read_all(bootstrap, f"{subscription}.dead"):
        assert time.monotonic() < deadline


def test_every_message_is_counted_in_its_minute(made: Made) -> None:
    found = [row for row in made.table("minutes") if row["topic"] == made.orders]
    assert [(row["minute"], row["messages"]) for row in found] == [
        (START, 6),
        (START + timedelta(minutes=1), 3),
        (START + timedelta(minutes=3), 1),
    ]
    assert made.told.messages == 13
    assert sum(row["messages"] for row in made.table("minutes")) == 13


def test_bytes_are_those_of_key_value_and_headers(made: Made) -> None:
    whole = [
        len(each.key or b"")
        + len(each.value or b"")
        + sum(len(name) + len(value or b"") for name, value in each.headers)
        for each in orders()
    ]
    (row,) = [row for row in made.table("topics") if row["topic"] == made.orders]
    assert row["bytes"] == sum(whole)
    assert row["max_bytes"] == max(whole)
    assert row["p50_bytes"] == sorted(whole)[4]
    assert (row["keys"], row["without_key"], row["tombstones"]) == (4, 1, 1)
    sizes = [row for row in made.table("sizes") if row["topic"] == made.orders]
    assert {row["from_bytes"]: row["messages"] for row in sizes} == {1: 1, 8: 1, 128: 7, 4096: 1}


def test_hottest_keys_come_first_and_are_bytes(made: Made) -> None:
    found = [row for row in made.table("keys") if row["topic"] == made.orders]
    assert (found[0]["key"], found[0]["messages"]) == (b"ann", 6)
    assert {row["key"] for row in found} == {b"ann", HOSTILE, BINARY, b"bob"}


def test_partitions_tell_their_share_and_offsets(made: Made) -> None:
    found = [row for row in made.table("partitions") if row["topic"] == made.orders]
    assert [(row["partition"], row["messages"], row["last_offset"]) for row in found] == [
        (0, 6, 5),
        (1, 4, 3),
    ]


def test_latency_is_told_of_messages_that_say_when_they_were_created(made: Made) -> None:
    (row,) = [row for row in made.table("latency") if row["topic"] == made.orders]
    assert (row["step"], row["messages"], row["p50_ms"], row["max_ms"]) == ("created → published", 6, 40, 40)


def test_dead_letters_tell_reason_attempts_and_time_in_the_queue(made: Made) -> None:
    (row,) = made.table("reasons")
    assert (row["topic"], row["reason"], row["messages"]) == (made.jobs, "rejected", 1)
    (tries,) = made.table("deliveries")
    assert (tries["deliveries"], tries["messages"]) == (1, 1)
    steps = {row["step"]: row for row in made.table("latency") if row["topic"] == made.jobs}
    assert set(steps) == {"published → delivered", "published → given up"}
    assert 0 <= steps["published → delivered"]["p50_ms"] <= steps["published → given up"]["p50_ms"]


def test_lag_is_that_of_groups_and_subscriptions(made: Made) -> None:
    behind = {(row["kind"], row["topic"]): row for row in made.table("lag")}
    group = behind["consumer group", made.orders]
    assert (group["position"], group["end"], group["messages"]) == (1, 4, 3)
    assert group["seconds"] > 0
    subscription = behind["subscription", made.jobs]
    assert (subscription["name"], subscription["messages"]) == (f"workers-{made.jobs}", 1)


def test_page_shows_foreign_text_as_text(made: Made) -> None:
    assert "<script" not in made.page
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;" in made.page
    assert f"billing {made.jobs} &lt;b&gt;" in made.page
    assert "0x0001020304050607" in made.page


def test_page_asks_nobody_for_anything(made: Made) -> None:
    for way in ("http://", "https://", "src=", "@import", "url(", "<link", "<iframe"):
        assert way not in made.page
    assert "default-src &#x27;none&#x27;" in made.page


def test_time_and_archive_narrow_what_is_read(made: Made, spark: SparkSession, tmp_path: Path) -> None:
    from postroad.pipelines.archive import ArchiveSettings, archive
    from postroad.pipelines.report import ReportSettings, report

    archive(spark, ArchiveSettings(made.bootstrap, [made.orders], str(tmp_path / "lake"), once=True))
    since, until = START + timedelta(minutes=1), START + timedelta(minutes=3)
    live = report(spark, ReportSettings(made.bootstrap, [made.orders], str(tmp_path / "live"), since, until))
    kept = report(
        spark,
        ReportSettings(NOBODY, [made.orders], str(tmp_path / "kept"), since, until, str(tmp_path / "lake")),
    )
    assert (live.messages, kept.messages) == (3, 3)
    tables = [
        [pq.read_table(tmp_path / where / f"{name}.parquet") for name in ("minutes", "keys", "sizes")]
        for where in ("live", "kept")
    ]
    assert tables[0] == tables[1]
    assert "Not known: " in (tmp_path / "kept/report.html").read_text()


def test_no_message_can_spoil_a_report(node: Node, spark: SparkSession, tmp_path: Path, topic: str) -> None:
    """Times of a broken clock, numbers that are none, and a different name for everything in each letter."""
    from postroad.pipelines.report import ReportSettings, report
    from postroad.pipelines.report.letters import NAMES_MAX, OTHERS

    def letter(number: int) -> Message:
        told = {
            names.DEAD_REASON: b"reason %d " % number + b"x" * 1000,
            names.DEAD_TOPIC: b"topic %d" % number,
            names.DEAD_SUBSCRIPTION: b"subscription %d" % number,
            names.DEAD_DELIVERIES: b"%d" % (-3_000_000 + number),
        }
        return Message(b"", headers=list(told.items()), time_ms=ms(0))

    letters = [letter(number) for number in range(3 * NAMES_MAX)]
    plain.create(node.bootstrap, topic, message_timestamp_after_max_ms=str(2**63 - 1))
    plain.send(node.bootstrap, topic, [*letters, letters[7], Message(b"", time_ms=300_000_000_000_000)])
    told = report(spark, ReportSettings(node.bootstrap, [topic], str(tmp_path)))
    assert told.messages == 3 * NAMES_MAX + 2
    reasons = pq.read_table(tmp_path / "reasons.parquet").to_pylist()
    assert sum(row["messages"] for row in reasons) == 3 * NAMES_MAX + 1
    assert len(reasons) == NAMES_MAX + 1
    (most,) = [row for row in reasons if row["messages"] == 2]
    assert (most["topic"], len(most["reason"])) == ("topic 7", 256)
    assert {row["reason"] for row in reasons if row["messages"] > 2} == {OTHERS}
    deliveries = pq.read_table(tmp_path / "deliveries.parquet").to_pylist()
    assert {row["deliveries"] for row in deliveries} == {None}


def test_letters_of_bad_rows_are_found_and_partitions_without_a_commit_are_lag(
    node: Node, spark: SparkSession, tmp_path: Path, topic: str
) -> None:
    from postroad.pipelines.report import ReportSettings, report

    rejected = f"rejected-{uuid.uuid4().hex[:8]}"
    plain.create(node.bootstrap, topic, 2)
    now_ms = int(time.time() * 1000)
    plain.send(node.bootstrap, topic, [Message(b"no json", partition=0, time_ms=now_ms)] * 5)
    plain.send(node.bootstrap, topic, [Message(b"{}", partition=1, time_ms=now_ms)] * 2)
    commit(node.bootstrap, f"half {topic}", {TopicPartition(topic, 1, 2)})
    options = {"valueFormat": "json", "valueSchema": "a int", "badRows": "deadletter"}
    reader = spark.read.format("postroad").options(**options, subscribe=topic, deadLetterTopic=rejected)
    assert reader.option("kafka.bootstrap.servers", node.bootstrap).load().count() == 2

    told = report(spark, ReportSettings(node.bootstrap, [topic], str(tmp_path)))
    reasons = pq.read_table(tmp_path / "reasons.parquet").to_pylist()
    assert sum(row["messages"] for row in reasons) == 5
    assert any("5 messages became dead letters" in finding for finding in told.findings)
    behind = pq.read_table(tmp_path / "lag.parquet").to_pylist()
    found = {(row["partition"], row["position"]): row["messages"] for row in behind}
    assert found == {(0, None): 5, (1, 2): 0}


def test_page_without_letters_says_where_it_looked(
    node: Node, spark: SparkSession, tmp_path: Path, topic: str
) -> None:
    from postroad.pipelines.report import ReportSettings, report

    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, plain.numbered(1))
    report(spark, ReportSettings(node.bootstrap, [topic], str(tmp_path / "one")))
    assert "None is known: no topic with dead letters" in (tmp_path / "one/report.html").read_text()
    plain.create(node.bootstrap, f"{topic}.x")
    asked = ReportSettings(node.bootstrap, [topic], str(tmp_path / "two"), dead_letters=[f"{topic}.x"])
    report(spark, asked)
    assert f"None of these topics in {topic}.x." in (tmp_path / "two/report.html").read_text()
    with pytest.raises(UnknownTopicOrPartition, match="no-such-topic"):
        report(spark, ReportSettings(node.bootstrap, [topic], str(tmp_path), dead_letters=["no-such-topic"]))


def test_topic_without_messages_has_a_page(
    node: Node, spark: SparkSession, tmp_path: Path, topic: str
) -> None:
    from postroad.pipelines.report import ReportSettings, report

    plain.create(node.bootstrap, topic)
    told = report(spark, ReportSettings(node.bootstrap, [topic], str(tmp_path)))
    assert told.headline == "There are no messages of this time in these topics."
    assert told.headline in (tmp_path / "report.html").read_text()


def test_what_is_wrong_is_said_before_anything_is_written(
    node: Node, spark: SparkSession, tmp_path: Path, topic: str
) -> None:
    from postroad.pipelines.report import ReportSettings, report

    home = tmp_path / "report"
    with pytest.raises(UnknownTopicOrPartition, match=topic):
        report(spark, ReportSettings(node.bootstrap, [topic], str(home)))
    plain.create(node.bootstrap, topic)
    with pytest.raises(PipelineError, match="--from must be before --until"):
        report(spark, ReportSettings(node.bootstrap, [topic], str(home), START, START))
    with pytest.raises(PipelineError, match="no archive is at"):
        report(spark, ReportSettings(node.bootstrap, [topic], str(home), archive=str(tmp_path / "none")))
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match="is a file: choose a directory"):
        report(spark, ReportSettings(node.bootstrap, [topic], str(tmp_path / "file")))
    assert not home.exists()


def test_command_wants_times_for_its_ends() -> None:
    told = CliRunner().invoke(main, ["pipeline", "report", "-t", "x", "--to", "y", "--from", "1200"])
    assert told.exit_code == 2
    assert "say a time ago (2h) or a date and time" in told.output
