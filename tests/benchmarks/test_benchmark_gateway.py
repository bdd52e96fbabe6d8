"""The gateway's clients against a real gateway: every message comes once, and is pushed by credit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import clients
from benchmarks.cache import Missing
from benchmarks.servers import Mode
from benchmarks.session import Limits, Session
from benchmarks.sqs_servers import ElasticMQ, Moto, PostroadGateway

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler here (Debian: gcc, libc6-dev)")

SQS, STREAM = "sqs_client", "stream_client"
SECONDS = 50  # a run ends by its count, however slow the machine is


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The clients are built once; whoever builds them again finds them."""
    server = PostroadGateway(Mode.PAGE_CACHE, tmp_path_factory.mktemp("data") / "postroad")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        try:
            server.start()
            yield Session(server, "test", Limits())
        finally:
            server.stop()


@pytest.mark.parametrize("connections", [1, 16])
@pytest.mark.parametrize("batch", [1, 10])
@pytest.mark.parametrize("command", ["send", "flow"])
def test_every_message_is_counted_once(session: Session, command: str, batch: int, connections: int) -> None:
    queue = session.queue(f"{command}-{batch}-{connections}", SQS)
    options = {"count": 205, "batch": batch, "connections": connections, "seconds": SECONDS}
    figures, cpu = session.run_queue(command, queue, SQS, **options)
    assert figures["messages"] == 205
    assert 0 < figures["p50_us"] <= figures["p99_us"]
    assert cpu > 0


@pytest.mark.parametrize("acks", ["batch", "single"])
@pytest.mark.parametrize("frame", [1, 100])
def test_pushed_messages_are_accepted_once(session: Session, frame: int, acks: str) -> None:
    queue = session.queue(f"push-{frame}-{acks}", STREAM)
    options = {"count": 3000, "frame": frame, "acks": acks, "seconds": SECONDS}
    figures, _ = session.run_queue("flow", queue, STREAM, **options)
    assert figures["messages"] == 2999  # the first one warms up


def test_latency_of_push_is_given_in_percentiles(session: Session) -> None:
    queue = session.queue("push-latency", STREAM)
    figures, _ = session.run_queue("latency", queue, STREAM, count=200, rate=1000, acks="single")
    assert 0 < figures["p50_us"] <= figures["p99_us"] <= figures["max_us"]


def test_error_of_the_server_is_said(session: Session) -> None:
    with pytest.raises(clients.ClientFailed, match="QueueDoesNotExist"):
        session.run_queue("send", "nowhere", SQS)


@pytest.mark.parametrize("server", [Moto, ElasticMQ])
def test_server_without_a_disk_is_left_out_where_messages_are_synced(
    server: type[Moto | ElasticMQ], tmp_path: Path
) -> None:
    with pytest.raises(Missing, match="in memory only"):
        server(Mode.SYNCED, tmp_path).prepare()
