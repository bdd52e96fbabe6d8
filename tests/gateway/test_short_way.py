"""The short way past aiohttp: nobody can tell from the answers which way a request took."""

from __future__ import annotations

import json
import logging
import random
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from postroad.gateway import health, sqs
from postroad.gateway.connections import Connection
from postroad.testing import Node

from .conftest import Routes, RunningGateway, StartGateway
from .processes import PATIENCE_S, address, alone, connect, eventually, get, read_all, url_of
from .test_plain_request import HEADERS, REQUEST_LINES

LONG_WAY = {"TE": "trailers"}  # changes nothing, but is not plain
CLOSE = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
DIALECTS: list[Routes] = [health.routes, sqs.routes]

Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway(DIALECTS, auto_create=True)


def ask(action: str, body: object, headers: Mapping[str, str] | None = None, path: str = "/") -> bytes:
    """The bytes of a request; a body that is bytes is sent as it is."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {
        "Host": "127.0.0.1:8080",
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": f"AmazonSQS.{action}",
        **(headers or {}),
        "Content-Length": str(len(data)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + data


class Talk:
    """One connection."""

    def __init__(self, url: str) -> None:
        self.sock = connect(url)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self.sock.makefile("rb")

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.sock.close()

    def answer(self) -> Answer:
        """The next one."""
        status = int(self._file.readline().split(b" ")[1])
        headers: dict[str, str] = {}
        while line := self._file.readline().rstrip(b"\r\n"):
            name, _, value = line.decode().partition(": ")
            headers[name] = value
        return status, headers, self._file.read(int(headers["Content-Length"]))

    def ask(self, data: bytes) -> Answer:
        self.sock.sendall(data)
        return self.answer()


def once(url: str, data: bytes) -> Answer:
    with Talk(url) as talk:
        return talk.ask(data)


def alike(answer: Answer) -> tuple[int, list[tuple[str, str]], bytes]:
    """Without what differs from answer to answer."""
    status, headers, body = answer
    ours = {"Date": "…", "x-amzn-RequestId": "…"}
    assert all(headers.get(name) for name in ours)
    return status, list({**headers, **ours}.items()), re.sub(rb'"MessageId":"[^"]+"', b"", body)


def connection_of(gateway: RunningGateway, talk: Talk) -> Connection:
    """The gateway's end. Those of others, who have gone, may still be there."""
    address = talk.sock.getsockname()
    (found,) = [each for each in list(gateway.door.connections) if each.peername == address]
    return found


def is_short(gateway: RunningGateway, talk: Talk) -> bool:
    """Whether its connection is on the short way."""
    return connection_of(gateway, talk).short_way is not None


def is_empty(gateway: RunningGateway) -> bool:
    """Nobody is connected."""
    return not gateway.door.connections


def messages(gateway: RunningGateway, queue: str, wait_s: int = 0) -> list[dict[str, str]]:
    body = {"QueueUrl": queue, "MaxNumberOfMessages": 10, "WaitTimeSeconds": wait_s}
    found = json.loads(once(gateway.url, ask("ReceiveMessage", body))[2])
    return list(found.get("Messages", ()))


@pytest.fixture
def queue(gateway: RunningGateway, name: str) -> str:
    answer = once(gateway.url, ask("CreateQueue", {"QueueName": name}))
    return str(json.loads(answer[2])["QueueUrl"])


# --- the same answers --------------------------------------------------------------------------------

QUEUE = "http://a/000000000000/{queue}"
ASKED: dict[str, tuple[str, object]] = {
    "a message": ("SendMessage", {"QueueUrl": QUEUE, "MessageBody": "hello"}),
    "a message with an attribute": (
        "SendMessage",
        {
            "QueueUrl": QUEUE,
            "MessageBody": "ä",
            "MessageAttributes": {"a": {"DataType": "String", "StringValue": "b"}},
        },
    ),
    "a batch": ("SendMessageBatch", {"QueueUrl": QUEUE, "Entries": [{"Id": "1", "MessageBody": "a"}]}),
    "an empty batch": ("SendMessageBatch", {"QueueUrl": QUEUE, "Entries": []}),
    "an empty message": ("SendMessage", {"QueueUrl": QUEUE, "MessageBody": ""}),
    "characters that are not taken": ("SendMessage", {"QueueUrl": QUEUE, "MessageBody": "\0"}),
    "half a surrogate pair": ("SendMessage", b'{"QueueUrl": "q", "MessageBody": "\\ud800"}'),
    "a wrong delay": ("SendMessage", {"QueueUrl": QUEUE, "MessageBody": "a", "DelaySeconds": 901}),
    "nothing to receive": ("ReceiveMessage", {"QueueUrl": QUEUE + "-empty"}),
    "too much to receive": ("ReceiveMessage", {"QueueUrl": QUEUE, "MaxNumberOfMessages": 11}),
    "no queue": ("ReceiveMessage", {"QueueUrl": "http://a/000000000000/nothing"}),
    "no such receipt": ("DeleteMessage", {"QueueUrl": QUEUE, "ReceiptHandle": "x"}),
    "a URL": ("GetQueueUrl", {"QueueName": "{queue}"}),
    "queues": ("ListQueues", {"QueueNamePrefix": "{queue}"}),
    "attributes": ("GetQueueAttributes", {"QueueUrl": QUEUE, "AttributeNames": ["VisibilityTimeout"]}),
    "a missing member": ("SendMessage", {"QueueUrl": QUEUE}),
    "a wrong type": ("SendMessage", {"QueueUrl": 5, "MessageBody": "a"}),
    "an action that there isn't": ("Nothing", {}),
    "no JSON": ("SendMessage", b"hello"),
    "no object": ("SendMessage", b"[]"),
    "no UTF-8": ("SendMessage", b'{"QueueUrl": "\xff"}'),
    "deep JSON": ("SendMessage", b'{"QueueUrl":' + b"[" * 100_000),
    "nothing": ("SendMessage", b""),
}


@pytest.mark.parametrize(("action", "body"), ASKED.values(), ids=ASKED)
def test_request_gets_the_same_answer_on_both_ways(
    gateway: RunningGateway, queue: str, name: str, action: str, body: object
) -> None:
    once(gateway.url, ask("CreateQueue", {"QueueName": f"{name}-empty"}))
    data = body if isinstance(body, bytes) else json.dumps(body).replace("{queue}", name).encode()
    with Talk(gateway.url) as talk:
        short = talk.ask(ask(action, data))
        assert is_short(gateway, talk) == (action != "Nothing")
    with Talk(gateway.url) as talk:
        long = talk.ask(ask(action, data, LONG_WAY))
        assert not is_short(gateway, talk)
    assert alike(short) == alike(long)
    assert short[1]["Server"] == long[1]["Server"]


def test_queue_path_is_answered_as_the_root_is(gateway: RunningGateway, queue: str, name: str) -> None:
    body = {"QueueUrl": queue, "MessageBody": "hello"}
    with Talk(gateway.url) as talk:
        assert talk.ask(ask("SendMessage", body, path=f"/000000000000/{name}"))[0] == 200
        assert is_short(gateway, talk)


def test_body_beyond_the_limit_is_refused_alike(start_gateway: StartGateway) -> None:
    url = start_gateway(DIALECTS, body_bytes_max=1024).url
    body = b'{"QueueUrl":"q","MessageBody":"' + b"x" * 1000 + b'"}'
    short, long = once(url, ask("SendMessage", body)), once(url, ask("SendMessage", body, LONG_WAY))
    assert short[0] == 413
    assert alike(short) == alike(long)


def test_access_log_and_metrics_tell_the_same(
    start_gateway: StartGateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "postroad.access")
    gateway = start_gateway(DIALECTS, access_log="all")
    for headers in ({}, LONG_WAY):
        once(gateway.url, ask("ListQueues", {"QueueNamePrefix": "none"}, headers))
        once(gateway.url, ask("ListQueues", b"{", headers))
    lines = [record.getMessage() for record in caplog.records if record.name == "postroad.access"]
    shorter = [re.sub(r"ms=\S+", "ms=…", line) for line in lines]
    assert len(shorter) == 4
    assert shorter[:2] == shorter[2:]
    page = gateway.gateway.metrics.page()
    assert 'requests_total{dialect="sqs",action="ListQueues",status="200"} 2' in page
    assert "postroad_http_requests_in_flight 0" in page


# --- signatures --------------------------------------------------------------------------------------


def signed(body: bytes, secret: str = "secret", at: float | None = None) -> dict[str, str]:
    """The headers of a ListQueues that is signed with the key `key`."""
    headers = {"Host": "127.0.0.1:8080", "X-Amz-Target": "AmazonSQS.ListQueues"}
    request = AWSRequest("POST", "http://127.0.0.1:8080/", headers, body)
    auth = SigV4Auth(Credentials("key", secret), "sqs", "eu-west-1")
    if at is None:
        auth.add_auth(request)
    else:
        request.context["timestamp"] = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
        request.headers["X-Amz-Date"] = request.context["timestamp"]
        canonical = auth.canonical_request(request)
        signature = auth.signature(auth.string_to_sign(request, canonical), request)
        auth._inject_signature_to_request(request, signature)
    return {name: request.headers[name] for name in ("X-Amz-Date", "Authorization")}


# Signed when they are needed: a signature grows old in a quarter of an hour.
SIGNED: dict[str, tuple[Callable[[], dict[str, str]], int]] = {
    "a right one": (lambda: signed(b"{}"), 200),
    "another body": (lambda: signed(b"[]"), 403),
    "another secret": (lambda: signed(b"{}", "wrong"), 403),
    "an old one": (lambda: signed(b"{}", at=time.time() - 1000), 403),
    "one for later": (lambda: signed(b"{}", at=time.time() + 3000), 403),
    "none": (dict, 403),
    "a header that is not signed": (lambda: {**signed(b"{}"), "X-Amz-Own": "a"}, 400),
}


@pytest.mark.parametrize(("sign", "status"), SIGNED.values(), ids=SIGNED)
def test_signature_is_checked_alike(
    start_gateway: StartGateway, sign: Callable[[], dict[str, str]], status: int
) -> None:
    gateway = start_gateway(DIALECTS, access_keys="key:secret")
    headers = sign()
    with Talk(gateway.url) as talk:
        short = talk.ask(ask("ListQueues", b"{}", headers))
        assert is_short(gateway, talk)
    long = once(gateway.url, ask("ListQueues", b"{}", {**headers, **LONG_WAY}))
    assert short[0] == status, short
    assert alike(short) == alike(long)


def test_admins_alone_may_delete_on_the_short_way(start_gateway: StartGateway) -> None:
    gateway = start_gateway(DIALECTS, access_keys="key:secret")
    headers = {"Host": "127.0.0.1:8080", "X-Amz-Target": "AmazonSQS.DeleteQueue"}
    request = AWSRequest("POST", "http://127.0.0.1:8080/", headers, b'{"QueueUrl":"q"}')
    SigV4Auth(Credentials("key", "secret"), "sqs", "eu-west-1").add_auth(request)
    shown = {name: request.headers[name] for name in ("X-Amz-Date", "Authorization")}
    assert once(gateway.url, ask("DeleteQueue", b'{"QueueUrl":"q"}', shown))[0] == 403


# --- bytes in pieces and in heaps ----------------------------------------------------------------------


def test_request_gets_the_same_answer_wherever_it_is_cut(gateway: RunningGateway) -> None:
    data = ask("GetQueueUrl", {"QueueName": "nothing"})
    whole = alike(once(gateway.url, data))
    with Talk(gateway.url) as talk:
        for at in range(1, len(data)):
            talk.sock.sendall(data[:at])
            time.sleep(0.001)
            assert alike(talk.ask(data[at:])) == whole, f"cut after {at} bytes"
        assert is_short(gateway, talk)


def test_large_body_comes_in_pieces(gateway: RunningGateway, queue: str) -> None:
    text = "x" * 1_000_000
    data = ask("SendMessage", {"QueueUrl": queue, "MessageBody": text})
    with Talk(gateway.url) as talk:
        for at in range(0, len(data), 50_000):
            talk.sock.sendall(data[at : at + 50_000])
            time.sleep(0.001)
        assert talk.answer()[0] == 200
        assert is_short(gateway, talk)
    (message,) = messages(gateway, queue, 5)
    assert message["Body"] == text


def test_pipelined_requests_are_answered_in_their_order(gateway: RunningGateway, queue: str) -> None:
    good = [ask("SendMessage", {"QueueUrl": queue, "MessageBody": str(number)}) for number in range(3)]
    wrong = ask("SendMessage", b"hello")
    waits = ask("ReceiveMessage", {"QueueUrl": queue, "MaxNumberOfMessages": 1, "WaitTimeSeconds": 5})
    odd = ask("GetQueueUrl", {"QueueName": "nothing"}, LONG_WAY)
    with Talk(gateway.url) as talk:
        talk.sock.sendall(b"".join([good[0], waits, wrong, good[1], wrong, odd, good[2], CLOSE]))
        answers = [talk.answer() for _ in range(8)]
        assert talk.sock.recv(1) == b""
    assert [status for status, _, _ in answers] == [200, 200, 400, 200, 400, 400, 200, 200]
    assert b'"Body":"0"' in answers[1][2]
    assert b"SerializationException" in answers[2][2]
    assert b"QueueDoesNotExist" in answers[5][2]


def test_thousands_of_pipelined_requests_are_answered(gateway: RunningGateway) -> None:
    """Those that are refused at once too: one after the other, not one within the other."""
    count = 5000
    with Talk(gateway.url) as talk, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(talk.sock.sendall, ask("SendMessage", b"") * count)
        assert {talk.answer()[0] for _ in range(count)} == {400}
        sending.result()


def test_what_comes_while_a_request_is_answered_is_bounded(gateway: RunningGateway, queue: str) -> None:
    waits = ask("ReceiveMessage", {"QueueUrl": queue, "WaitTimeSeconds": 20})
    with Talk(gateway.url) as talk:
        talk.sock.sendall(waits)
        talk.sock.setblocking(False)
        sent, blocked = 0, 0
        while blocked < 50 and sent < 50_000_000:  # until nothing more goes for half a second
            try:
                sent += talk.sock.send(bytes(100_000))
                blocked = 0
            except BlockingIOError:
                blocked += 1
                time.sleep(0.01)
        way = connection_of(gateway, talk).short_way
        assert way is not None
        assert sent > 500_000, "what the kernel holds is not ours"
        assert len(way.kept) < 500_000
        once(gateway.url, ask("SendMessage", {"QueueUrl": queue, "MessageBody": "it need not wait on"}))
    eventually(lambda: gateway.gateway.metrics.in_flight == 0, "it still waits")


# --- whoever misuses it --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(start_gateway: StartGateway) -> tuple[str, str]:
    """With the short way and without it."""
    short = start_gateway(DIALECTS, request_ms=300, idle_ms=3000, auto_create=False)
    long = start_gateway(DIALECTS, request_ms=300, idle_ms=3000, auto_create=False, short_way=False)
    return short.url, long.url


def statuses(url: str, data: bytes) -> list[bytes]:
    """The statuses of all answers until the gateway closes, at the latest after the last request."""
    with connect(url) as sock:
        with suppress(ConnectionError):
            sock.sendall(data + CLOSE)
        return re.findall(rb"HTTP/1\.[01] (\d+)", read_all(sock))


TAIL = b"X-Amz-Target: AmazonSQS.GetQueueUrl\r\n"
ATTEMPTS = [
    *(line + b"\r\nHost: a\r\n" + TAIL + b"Content-Length: 2\r\n\r\n{}" for line in REQUEST_LINES.values()),
    *(b"POST / HTTP/1.1\r\nHost: a\r\n" + TAIL + lines + b"\r\nhello" for lines in HEADERS.values()),
]


def test_what_is_ambiguous_is_answered_as_by_aiohttp_alone(pair: tuple[str, str]) -> None:
    """All at once: where a body is missing aiohttp waits for it, ten seconds long."""
    with ThreadPoolExecutor(2 * len(ATTEMPTS)) as pool:
        short, long = [pool.map(lambda data, url=url: statuses(url, data), ATTEMPTS) for url in pair]
        assert (answered := list(short)) == list(long)
    assert not [data for data, found in zip(ATTEMPTS, answered, strict=True) if found[:1] == [b"200"]]


REFUSED = b"400"


def mutated(chance: random.Random) -> bytes:
    data = bytearray(ask("ListQueues", {"QueueNamePrefix": "none"}) * chance.choice([1, 1, 2]))
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(data))
        what = chance.choice([b"", b"\r", b"\n", b"\r\n", b" ", b":", b"\0", b"0", b"\t", b"\xff", b"a"])
        data[at : at + chance.choice([0, 1, 1, 4])] = what
    return bytes(data)


def test_bytes_that_are_changed_at_random_are_answered_as_by_aiohttp_alone(pair: tuple[str, str]) -> None:
    chance = random.Random(20261116)
    requests = [mutated(chance) for _ in range(200)]
    with ThreadPoolExecutor(32) as pool:
        short, long = (list(pool.map(lambda data, url=url: statuses(url, data), requests)) for url in pair)
    for request, one, other in zip(requests, short, long, strict=True):
        # What is refused takes along the requests that aiohttp read together with it; here they are answered.
        assert one == other or (other == [REFUSED] and one[-1] == REFUSED), request
    assert short.count([REFUSED]) > 20
    assert short.count([b"200", b"200"]) > 5


@pytest.fixture(scope="module")
def tight(broker: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a gateway that is a process, with little patience."""
    home: Path = tmp_path_factory.mktemp("tight")
    settings = ["--set", "http.request_ms=1s", "--set", "http.idle_ms=2s"]
    with alone(home, "--bootstrap", broker.bootstrap, *settings):
        yield url_of(home)


LIST = ask("ListQueues", {"QueueNamePrefix": "none"})


@pytest.mark.parametrize("beginning", [b"", LIST], ids=["nothing", "a request"])
def test_connection_that_is_idle_is_closed(tight: str, beginning: bytes) -> None:
    began = time.monotonic()
    with connect(tight) as sock:
        sock.sendall(beginning)
        assert read_all(sock).startswith(beginning and b"HTTP/1.1 200")
    assert 1 < time.monotonic() - began < PATIENCE_S / 2


def test_connection_that_is_used_is_not_idle(tight: str) -> None:
    with Talk(tight) as talk:
        for _ in range(17):
            assert talk.ask(LIST)[0] == 200
            time.sleep(0.2)


def test_long_poll_is_not_idle(tight: str, name: str) -> None:
    with Talk(tight) as talk:
        queue = json.loads(talk.ask(ask("CreateQueue", {"QueueName": name}))[2])["QueueUrl"]
        body = {"QueueUrl": queue, "WaitTimeSeconds": 4}
        assert talk.ask(ask("ReceiveMessage", body))[::2] == (200, b"{}")


@pytest.mark.parametrize("cut", [20, len(LIST) - 3], ids=["head", "body"])
def test_request_that_does_not_arrive_in_time_is_cut(tight: str, cut: int) -> None:
    began = time.monotonic()
    with Talk(tight) as talk:
        assert talk.ask(LIST)[0] == 200
        talk.sock.sendall(LIST[:cut])
        assert read_all(talk.sock) == b""
    assert 0.5 < time.monotonic() - began < PATIENCE_S / 2


def test_peer_that_reads_nothing_is_cut(
    gateway: RunningGateway, start_gateway: StartGateway, queue: str
) -> None:
    patient, gateway = gateway, start_gateway(DIALECTS, idle_ms=1000)
    body = {"QueueUrl": queue, "MessageBody": "x" * 300_000}
    with Talk(patient.url) as talk:
        for _ in range(30):
            assert talk.ask(ask("SendMessage", body))[0] == 200
    receive = ask("ReceiveMessage", {"QueueUrl": queue, "MaxNumberOfMessages": 1})
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(address(gateway.url))
    with sock:
        sock.sendall(receive * 30)
        eventually(lambda: not is_empty(gateway), "it is not let in")
        eventually(lambda: is_empty(gateway), "it is not cut")
    assert get(gateway.url + "/healthz")[0] == 200


# --- the end -------------------------------------------------------------------------------------------


def test_message_for_a_client_that_has_left_goes_to_another(gateway: RunningGateway, queue: str) -> None:
    wait = {"QueueUrl": queue, "WaitTimeSeconds": 20, "VisibilityTimeout": 600}
    with Talk(gateway.url) as talk:
        talk.sock.sendall(ask("ReceiveMessage", wait))
        eventually(lambda: gateway.gateway.metrics.in_flight == 1, "it does not wait")
    eventually(lambda: is_empty(gateway), "it has not left")
    once(gateway.url, ask("SendMessage", {"QueueUrl": queue, "MessageBody": "hello"}))
    assert [message["Body"] for message in messages(gateway, queue, 10)] == ["hello"]
    eventually(lambda: gateway.gateway.metrics.in_flight == 0, "it still waits")


def test_what_is_under_way_is_answered_when_the_gateway_stops(
    broker: Node, tmp_path: Path, name: str
) -> None:
    with alone(tmp_path, "--bootstrap", broker.bootstrap) as process, ExitStack() as stack:
        url = url_of(tmp_path)
        queue = f"http://a/000000000000/{name}"
        assert once(url, ask("CreateQueue", {"QueueName": name}))[0] == 200
        talks = [stack.enter_context(Talk(url)) for _ in range(5)]
        for talk in talks:
            talk.sock.sendall(ask("ReceiveMessage", {"QueueUrl": queue, "WaitTimeSeconds": 20}))
        eventually(lambda: "requests_in_flight 6" in get(url + "/metrics")[1], "they don't wait")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert [talk.answer()[::2] for talk in talks] == [(200, b"{}")] * 5
        assert process.wait(PATIENCE_S) == 0
        assert time.monotonic() - began < 15
