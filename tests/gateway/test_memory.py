"""What clients can make a gateway hold for them, all of them together, has a bound."""

from __future__ import annotations

import base64
import contextlib
import gc
import gzip
import json
import selectors
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postroad.gateway import health, push, rest, sqs
from postroad.gateway.connections import Connection
from postroad.gateway.memory import Memory
from postroad.testing import Node
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.processes import PATIENCE_S, alone, connect, eventually, get, read_all, url_of

MB = 1_000_000
MANY = 120  # connections, with 4 MB each
GROWTH_BYTES_MAX = 200 * MB  # less than half of what they send; the limit for all bodies is 67 MB
KEYS = "--set", "http.access_keys=key:secret"


class Gateway:
    """A process, and how much memory it has taken since it was ready."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self._pid = pid
        self._first = self._rss()

    @property
    def growth(self) -> int:
        return self._rss() - self._first

    def _rss(self) -> int:
        for line in Path(f"/proc/{self._pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no such process")


@contextlib.contextmanager
def started(home: Path, broker: Node, *settings: str) -> Iterator[Gateway]:
    with alone(home, "--bootstrap", broker.bootstrap, *settings) as process:
        url = url_of(home)
        assert get(url + "/healthz")[0] == 200
        yield Gateway(url, process.pid)


def unfinished(head: bytes, size: int = 4 * MB) -> bytes:
    """A request whose last byte is missing."""
    return head + b"Content-Length: %d\r\n\r\n" % size + b" " * (size - 1)


POST = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
PLAIN = unfinished(POST + b"X-Amz-Target: AmazonSQS.SendMessage\r\n")
QUERY = unfinished(POST)
REST = unfinished(
    b"POST /v1/topics/nothing/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
)
HEADS = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"".join(
    b"X-%d: " % n + b"a" * 15_000 + b"\r\n" for n in range(120)
)


class Clients:
    """They send one request over many connections at once, as far as the gateway takes it, and stop when an
    answer comes."""

    def __init__(self, url: str, request: bytes, count: int = MANY) -> None:
        self.answers: list[bytes] = []
        self._stack = contextlib.ExitStack()
        self._selector = self._stack.enter_context(selectors.DefaultSelector())
        for _ in range(count):
            sock = self._stack.enter_context(connect(url))
            sock.setblocking(False)
            both = selectors.EVENT_WRITE | selectors.EVENT_READ
            self._selector.register(sock, both, memoryview(request))

    def __enter__(self) -> Clients:
        while any(key.data for key in self._selector.get_map().values()) and self.go_on(1.0):
            pass
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def go_on(self, timeout_s: float = 0.0) -> bool:
        """Whether anything could be sent or received."""
        ready = self._selector.select(timeout_s)
        for key, events in ready:
            assert isinstance(key.fileobj, socket.socket)
            try:
                if events & selectors.EVENT_READ:
                    self.answers.append(key.fileobj.recv(65536))
                    self._selector.unregister(key.fileobj)
                elif left := key.data[key.fileobj.send(key.data[:1_000_000]) :]:
                    self._selector.modify(key.fileobj, key.events, left)
                else:
                    self._selector.modify(key.fileobj, selectors.EVENT_READ, None)
            except ConnectionError:
                self._selector.unregister(key.fileobj)
        return bool(ready)

    def has_answers(self, count: int) -> bool:
        self.go_on()
        return len(self.answers) >= count


@pytest.mark.parametrize("request_bytes", [PLAIN, QUERY, REST], ids=["plain", "query", "rest"])
def test_strangers_bodies_are_not_kept(tmp_path: Path, broker: Node, request_bytes: bytes) -> None:
    with started(tmp_path, broker, *KEYS) as gateway:
        with Clients(gateway.url, request_bytes) as clients:
            eventually(
                lambda: clients.has_answers(MANY // 2), "they are not refused before their body has come"
            )
            statuses = {answer.split(b" ", 2)[1] for answer in clients.answers if answer}
            assert statuses <= {b"401", b"403"}, "for want of a key, not of memory"
            assert gateway.growth < GROWTH_BYTES_MAX / 2
        assert get(gateway.url + "/healthz")[0] == 200


@pytest.mark.parametrize("request_bytes", [PLAIN, QUERY, REST], ids=["plain", "query", "rest"])
def test_bodies_of_all_clients_together_have_a_bound(
    tmp_path: Path, broker: Node, request_bytes: bytes
) -> None:
    with started(tmp_path, broker) as gateway:
        with Clients(gateway.url, request_bytes) as clients:
            assert gateway.growth < GROWTH_BYTES_MAX
            eventually(lambda: clients.has_answers(MANY // 2), "too few are refused")
            for answer in clients.answers:
                assert answer.startswith(b"HTTP/1.1 503 ")
                assert b"\r\nRetry-After: 1\r\n" in answer
            status, _ = get(gateway.url + "/v1/topics")
            assert status == 200, "small requests get through"
        large = b"[" + b" " * (3 * MB) + b"]"
        eventually(lambda: publish(gateway.url, large) == 400, "their memory does not come back")


def publish(url: str, body: bytes) -> int:
    request = urllib.request.Request(
        f"{url}/v1/topics/t/messages", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def test_packed_bodies_count_as_what_they_become(start_gateway: StartGateway) -> None:
    url = start_gateway([rest.routes], receive_bytes_max=1 << 20, body_bytes_max=MB).url
    packed = gzip.compress(b" " * (MB - 1000))
    head = b"POST /v1/topics/t/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    request = head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % (len(packed) + 1) + packed
    with Clients(url, request, 5) as clients:
        eventually(lambda: clients.has_answers(3), "they take more than the limit")
        assert all(answer.startswith(b"HTTP/1.1 503 ") for answer in clients.answers)


def test_long_heads_are_refused(tmp_path: Path, broker: Node) -> None:
    with started(tmp_path, broker) as gateway, Clients(gateway.url, HEADS) as clients:
        assert gateway.growth < 50 * MB
        eventually(lambda: clients.has_answers(MANY // 2), "too few are refused")
        assert {answer.split(b" ")[1] for answer in clients.answers} <= {b"431", b"400"}


def test_head_that_comes_in_one_piece_is_measured(start_gateway: StartGateway) -> None:
    url = start_gateway([health.routes], header_bytes_max=2048).url
    lines = b"".join(b"X-%d: " % n + b"a" * 100 + b"\r\n" for n in range(30))
    with connect(url) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + lines + b"\r\n")
        assert read_all(sock).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("request_bytes", [PLAIN, QUERY, REST], ids=["plain", "query", "rest"])
def test_nothing_of_a_client_is_left_when_it_has_gone(
    start_gateway: StartGateway, request_bytes: bytes
) -> None:
    """Without the collector of cycles, which may come late."""
    gateway = start_gateway([health.routes, sqs.routes, rest.routes])
    gc.collect()
    gc.disable()
    try:
        with Clients(gateway.url, request_bytes[:MB], 1):
            eventually(lambda: held_bytes(gateway) > MB / 2, "it is not let in")
            assert connections(gateway) == 1
        eventually(lambda: connections(gateway) == 0, "something still holds it")
    finally:
        gc.enable()
    assert held_bytes(gateway) == 0


def connections(gateway: RunningGateway) -> int:
    """All that are somewhere in memory, and not of other gateways."""
    return sum(type(thing) is Connection and thing.door is gateway.door for thing in gc.get_objects())


def held_bytes(gateway: RunningGateway) -> int:
    return gateway.door.memory.received_bytes


def test_requests_in_a_row_are_counted_once(start_gateway: StartGateway) -> None:
    """aiohttp reads ahead: what is queued counts, what is answered does not."""
    gateway = start_gateway([rest.routes], receive_bytes_max=1 << 20, body_bytes_max=100_000)
    body = b"[" + b" " * 50_000 + b"]"
    head = b"POST /v1/topics/t/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with connect(gateway.url) as sock:
        for _ in range(20):
            sock.sendall(request * 5)
            answer = b""
            while answer.count(b"HTTP/1.1 400 ") < 5:
                more = sock.recv(65536)
                assert more, answer
                answer += more
    eventually(lambda: held_bytes(gateway) == 0, "something is still counted")


# --- answers -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([health.routes, rest.routes, push.routes], send_bytes_max=8 * MB)


@pytest.fixture
def full(gateway: RunningGateway, name: str) -> str:
    """A subscription with 30 messages of 600 kB."""
    call(gateway.url, "/v1/topics", {"name": name, "partitions": 2})
    call(gateway.url, "/v1/subscriptions", {"name": name, "topics": [name], "start": "earliest"})
    for number in range(30):
        text = f"{number:03}" + "x" * 600_000
        call(gateway.url, f"/v1/topics/{name}/messages", {"value": text, "partition": number % 2})
    return name


def call(url: str, path: str, body: object = None) -> dict[str, object]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        found: dict[str, object] = json.loads(answer.read())
        return found


@pytest.mark.parametrize("values", ["text", "base64"])
def test_pages_of_a_peek_are_bounded_by_bytes_and_lead_through_all(
    gateway: RunningGateway, full: str, values: str
) -> None:
    numbers: list[str] = []
    path = f"/v1/subscriptions/{full}/messages?limit=1000&values={values}"
    after, pages = "", 0
    while True:
        page = call(gateway.url, path + after)
        assert len(json.dumps(page)) < 8 * MB
        assert isinstance(page["messages"], list)
        numbers += [beginning(message["value"]) for message in page["messages"]]
        pages += 1
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    even, odd = range(0, 30, 2), range(1, 30, 2)
    assert numbers == [f"{number:03}" for number in [*even, *odd]]
    assert 3 <= pages <= 10


def beginning(value: str | dict[str, str]) -> str:
    return value[:3] if isinstance(value, str) else base64.b64decode(value["base64"][:4]).decode()


def test_pages_of_a_peek_lead_on_by_number_too(gateway: RunningGateway, full: str) -> None:
    path = f"/v1/subscriptions/{full}/messages?limit=2"
    first = call(gateway.url, path)
    assert first["next"] == f"{full}:0:2"
    second = call(gateway.url, f"{path}&after={first['next']}")
    assert isinstance(second["messages"], list)
    assert [message["offset"] for message in second["messages"]] == [2, 3]


def test_readers_that_never_read_are_cut_when_there_are_too_many(gateway: RunningGateway, full: str) -> None:
    peek = b"GET /v1/subscriptions/%b/messages?limit=1000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % full.encode()
    memory: Memory[object] = gateway.door.memory  # type: ignore[assignment]
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            sock = stack.enter_context(slow_reader(gateway.url))
            sock.sendall(peek)
        eventually(lambda: memory.unread_bytes > 4 * MB, "nobody keeps it waiting")
        began = time.monotonic()
        assert get(gateway.url + "/healthz")[0] == 200
        assert time.monotonic() - began < PATIENCE_S / 4
        eventually(lambda: len(gateway.door.connections) < 12, "nobody is cut")
        assert memory.unread_bytes <= 8 * MB
    eventually(lambda: memory.unread_bytes == 0, "it still counts")


def test_a_receive_is_bounded_by_bytes_and_no_message_counts_a_delivery_twice(
    gateway: RunningGateway, full: str
) -> None:
    receipts = [str(message["receipt"]) for message in received(gateway, full, deliveries=1)]
    call(gateway.url, f"/v1/subscriptions/{full}/release", {"receipts": receipts, "delay_ms": 0})
    again = received(gateway, full, deliveries=2)  # now the node knows of all 18 MB
    assert sorted(str(message["value"])[:3] for message in again) == [f"{number:03}" for number in range(30)]


def received(gateway: RunningGateway, subscription: str, deliveries: int) -> list[dict[str, object]]:
    """All 30 messages, each delivered for the same time."""
    found: list[dict[str, object]] = []
    while len(found) < 30:
        wanted = {"max": 1000, "wait_ms": 10_000}
        answer = call(gateway.url, f"/v1/subscriptions/{subscription}/receive", wanted)
        assert isinstance(answer["messages"], list)
        assert 1 <= len(answer["messages"]) <= 6
        assert {message["deliveries"] for message in answer["messages"]} == {deliveries}
        found += answer["messages"]
    return found


def test_messages_ahead_of_a_websocket_that_never_reads_count(gateway: RunningGateway, full: str) -> None:
    """Each client has one message in its write buffer, which makes 5 MB, and another behind it. The kernel
    takes more than there is at first; it is full when messages come again because their locks have ended."""
    upgrade = (
        f"GET /v1/subscriptions/{full}/stream?credit=100&lock_ms=1000 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
    )
    memory: Memory[object] = gateway.door.memory  # type: ignore[assignment]
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(slow_reader(gateway.url)).sendall(upgrade.encode())
        eventually(lambda: memory.unread_bytes > 6 * MB, "they do not count")
    eventually(lambda: memory.unread_bytes == 0, "it still counts")


def slow_reader(url: str) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, port = url.removeprefix("http://").split(":")
    sock.connect((host, int(port)))
    return sock


def test_tails_that_never_read_take_little(tmp_path: Path, broker: Node, name: str) -> None:
    count = 20
    with started(tmp_path, broker) as gateway, contextlib.ExitStack() as stack:
        for _ in range(10):
            messages = [{"value": "x" * 100} for _ in range(1000)]
            call(gateway.url, f"/v1/topics/{name}/messages", messages)
        before = gateway.growth
        for _ in range(count):
            sock = stack.enter_context(slow_reader(gateway.url))
            sock.sendall(
                b"GET /v1/topics/%b/tail?from=beginning HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % name.encode()
            )
        taken = settled(lambda: gateway.growth)
        assert (taken - before) / count < 2 * MB


def settled(figure: Callable[[], int]) -> int:
    """The figure once it does not grow any more."""
    last, since = figure(), time.monotonic()
    while time.monotonic() - since < 0.5:
        time.sleep(0.05)
        if (now := figure()) > last + MB:
            last, since = now, time.monotonic()
    return last
