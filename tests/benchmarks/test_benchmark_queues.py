"""The queue client against a real node: every message comes once, and what is held costs little memory."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks import clients, queues
from benchmarks.servers import Mode, Postroad
from benchmarks.session import Limits, Session
from postroad.testing import Node, node

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler here (Debian: gcc, libc6-dev)")

Client = Callable[..., dict[str, float]]
SECONDS = 50  # a run ends by its count, however slow the machine is


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The client, built once; whoever builds it again finds it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield clients.build("share")


@pytest.fixture(scope="module")
def running() -> Iterator[Node]:
    with node() as started:
        yield started


@pytest.fixture
def client(program: Path, running: Node, request: pytest.FixtureRequest) -> Client:
    """Runs a command of the client on a queue of the test's own."""
    port = running.bootstrap.rpartition(":")[2]
    queue = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)

    def run(command: str, **options: object) -> dict[str, float]:
        options["seconds"] = SECONDS
        return clients.run(program, (port, command, queue, *(f"{k}={v}" for k, v in options.items())))

    run("create")
    return run


@pytest.mark.parametrize("acks", ["batch", "single"])
@pytest.mark.parametrize("consumers", [1, 4])
def test_flow_ends_when_every_message_was_acknowledged_once(
    client: Client, acks: str, consumers: int
) -> None:
    figures = client("flow", count=3000, consumers=consumers, acks=acks)
    assert figures["messages"] == 2999  # the first one warms up
    assert client("flow", count=100, first=3000, consumers=1)["messages"] == 99


@pytest.mark.parametrize("acks", ["batch", "single"])
def test_flow_goes_through_all_partitions(program: Path, running: Node, acks: str) -> None:
    port, queue = running.bootstrap.rpartition(":")[2], f"partitions-{acks}"
    clients.run(program, (port, "create", queue, "partitions=8"))
    options = ("count=3000", "consumers=3", f"acks={acks}", f"seconds={SECONDS}")
    assert clients.run(program, (port, "flow", queue, *options))["messages"] == 2999


def test_flow_takes_from_a_backlog_as_much_as_it_publishes(client: Client) -> None:
    client("fill", count=5000)
    figures = client("flow", count=5000, first=5000, ahead=500)
    assert figures["messages"] >= 3000  # up to 500 and a fetch of 1000 are taken before the clock starts


def test_delayed_messages_are_passed_over(client: Client) -> None:
    client("fill", count=1000, delay_ms=3_600_000)
    assert client("flow", count=500, first=1000)["messages"] == 499


def test_latency_is_given_in_percentiles(client: Client) -> None:
    figures = client("latency", count=200, rate=1000, acks="single")
    assert 0 < figures["p50_us"] <= figures["p99_us"] <= figures["max_us"]


@pytest.mark.usefixtures("program")
def test_hundred_thousand_messages_in_flight_stay_under_thirty_megabytes(tmp_path: Path) -> None:
    server = Postroad(Mode.PAGE_CACHE, tmp_path / "postroad")
    session = Session(server, "test", Limits())
    ragged_mb, _ = queues.held_mb(session, queues.IN_FLIGHT_MESSAGES, every=2)
    assert ragged_mb < queues.IN_FLIGHT_MB_MAX
