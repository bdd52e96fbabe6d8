"""What strangers may do, and what becomes of them when they do more."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from postroad.config.sections import Http
from postroad.gateway import bodies, health, rest, sqs
from postroad.gateway.app import create_app
from postroad.gateway.connections import Door
from postroad.gateway.gateway import Gateway, GatewaySettings
from postroad.gateway.serve import bind
from postroad.testing import Node

from .conftest import StartGateway
from .processes import PATIENCE_S, alone, ask_for_health, connect, eventually, get, read_all, url_of


@pytest.fixture(scope="module")
def tight(broker: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a gateway with narrow limits."""
    home: Path = tmp_path_factory.mktemp("tight")
    limits = {
        "http.request_ms": "1s",
        "http.idle_ms": "3s",
        "http.header_bytes_max": "2KiB",
    }
    settings = [word for name, value in limits.items() for word in ("--set", f"{name}={value}")]
    with alone(home, "--bootstrap", broker.bootstrap, *settings):
        yield url_of(home)


def talk(url: str, request: bytes) -> bytes:
    """All that comes back until the gateway closes the connection."""
    with connect(url) as sock:
        sock.sendall(request)
        return read_all(sock)


GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LAST_CHUNK = b"0\r\n\r\n"

AMBIGUOUS = {
    "length and chunks": POST + b"Content-Length: 5\r\n" + CHUNKED + b"\r\n" + LAST_CHUNK,
    "two lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhelloo",
    "a length twice": POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "a list of lengths": POST + b"Content-Length: 5, 5\r\n\r\nhello",
    "a signed length": POST + b"Content-Length: +5\r\n\r\nhello",
    "a length with a zero before it": POST + b"Content-Length: 05\r\n\r\nhello",
    "two blanks after the method": b"GET  /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "two blanks before the version": b"GET /healthz  HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "a folded line": GET + b"X-A: b\r\n c\r\n\r\n",
    "a blank before the colon": GET + b"X : a\r\n\r\n",
    "line feeds alone": b"GET / HTTP/1.1\nHost: a\n\n",
    "a carriage return alone": GET + b"X: a\rb\r\n\r\n",
    "a null byte": GET + b"X: a\0b\r\n\r\n",
    "two hosts": GET + b"Host: b\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "chunks twice": POST + CHUNKED + CHUNKED + b"\r\n" + LAST_CHUNK,
    "chunks in between": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n" + LAST_CHUNK,
    "no chunk size": POST + CHUNKED + b"\r\n0x5\r\nhello\r\n" + LAST_CHUNK,
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a long line": GET + b"X: " + b"a" * 3000 + b"\r\n\r\n",
    "many lines": GET + b"X: a\r\n" * 200 + b"\r\n",
}


@pytest.mark.parametrize("request_bytes", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_what_two_readers_could_understand_differently_is_refused(tight: str, request_bytes: bytes) -> None:
    answer = talk(tight, request_bytes)
    assert answer.split(b" ")[1] == b"400", answer
    assert b"Traceback" not in answer
    assert answer.count(b"HTTP/1.") == 1, "nothing behind it is taken for a request"


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked", b"HTTP/1.0\r\nTransfer-Encoding: chunked"],
)
def test_only_chunks_are_taken_and_only_of_who_knows_them(tight: str, head: bytes) -> None:
    answer = talk(tight, b"GET /healthz " + head + b"\r\nConnection: close\r\n\r\n0\r\n\r\n")
    assert answer.split(b" ")[1] == b"501", answer


def test_blanks_are_looked_for_in_each_piece_of_the_first_line(start_gateway: StartGateway) -> None:
    with connect(start_gateway([health.routes]).url) as sock:
        ask_for_health(sock)
        for piece in (b"\r\nGET ", b" /healthz HTTP/1.1\r\nHost: a\r\n\r\n"):
            sock.sendall(piece)
            time.sleep(0.05)
        assert read_all(sock).startswith(b"HTTP/1.1 400 ")


def test_nothing_is_lost_unseen_behind_an_upgrade_that_is_not_done(start_gateway: StartGateway) -> None:
    """aiohttp drops what comes with it: the connection ends, so that the client sends it again."""
    url = start_gateway([health.routes], idle_ms=10 * int(PATIENCE_S) * 1000).url  # it does not end by that
    upgrade = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    answer = talk(url, upgrade + b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 ") == 1
    assert b"\r\nConnection: close\r\n" in answer


def test_one_connection_too_many_from_an_address_is_closed(start_gateway: StartGateway) -> None:
    url = start_gateway([health.routes], connections_per_address_max=2).url
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(connect(url)) for _ in range(2)]
        for sock in sockets:
            ask_for_health(sock)
        with contextlib.suppress(ConnectionResetError):
            assert read_all(stack.enter_context(connect(url))) == b""
        other = stack.enter_context(connect(url, "127.0.0.2"))
        ask_for_health(other)
        ask_for_health(sockets[0])
    assert eventually_answers(url), "there is room again when the others have gone"


def test_one_connection_too_many_is_closed_and_the_others_go_on(start_gateway: StartGateway) -> None:
    url = start_gateway([health.routes], connections_max=5).url
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(connect(url)) for _ in range(5)]
        for sock in sockets:
            ask_for_health(sock)
        with contextlib.suppress(ConnectionResetError):  # as good as an end
            assert read_all(stack.enter_context(connect(url))) == b""
        ask_for_health(sockets[0])
    assert eventually_answers(url), "there is room again when the others have gone"


def eventually_answers(url: str) -> bool:
    for _ in range(100):
        with contextlib.suppress(OSError):
            return get(url + "/healthz")[0] == 200
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    "beginning",
    [b"GET /healthz HT", b"POST /v1/nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf"],
    ids=["head", "body"],
)
def test_request_that_does_not_arrive_in_time_is_cut(tight: str, beginning: bytes) -> None:
    began = time.monotonic()
    with connect(tight) as sock:
        sock.sendall(beginning)
        read_all(sock)
    assert time.monotonic() - began < PATIENCE_S / 2


def test_request_that_trickles_is_cut_however_busy_it_looks(tight: str) -> None:
    began = time.monotonic()
    with connect(tight) as sock, contextlib.suppress(ConnectionError):
        while time.monotonic() - began < PATIENCE_S:
            sock.sendall(b"G")
            time.sleep(0.1)
    assert time.monotonic() - began < PATIENCE_S / 2


def test_connection_that_is_idle_is_closed(tight: str) -> None:
    with connect(tight) as sock:
        began = time.monotonic()
        ask_for_health(sock)
        assert sock.recv(1000) == b""
        assert 2 < time.monotonic() - began < PATIENCE_S / 2


def strange_routes(gateway: Gateway) -> list[web.RouteDef]:
    async def fails(request: web.Request) -> web.Response:
        raise RuntimeError("secret of the house")

    async def times_out(request: web.Request) -> web.Response:
        raise TimeoutError("secret of the house")

    async def echoes(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await bodies.read(request))))

    return [web.get("/fails", fails), web.get("/times-out", times_out), web.post("/echoes", echoes)]


@pytest.mark.parametrize("path", ["/fails", "/times-out"])
def test_what_goes_wrong_inside_is_told_to_the_log_alone(
    start_gateway: StartGateway, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    status, text = get(start_gateway([strange_routes]).url + path, Accept="text/html")
    assert status == 500
    assert "secret" not in text
    assert "Traceback" not in text
    assert "secret of the house" in caplog.text


def post(url: str, body: bytes, *headers: bytes) -> bytes:
    head = [b"POST /echoes HTTP/1.1", b"Host: a", b"Connection: close", b"Content-Length: %d" % len(body)]
    return talk(url, b"\r\n".join([*head, *headers, b"", body]))


def test_body_beyond_the_limit_is_refused(start_gateway: StartGateway) -> None:
    url = start_gateway([strange_routes], body_bytes_max=1024).url
    assert post(url, b"x" * 1024).endswith(b"1024")
    assert post(url, b"x" * 1025).startswith(b"HTTP/1.1 413")


def test_small_body_that_unpacks_to_a_large_one_is_refused(start_gateway: StartGateway) -> None:
    url = start_gateway([strange_routes], body_bytes_max=10_000).url
    packed = gzip.compress(bytes(50_000_000))
    assert post(url, packed[:9_000], b"Content-Encoding: gzip").split(b" ")[1] in (b"400", b"413")


def test_body_that_is_not_packed_as_it_says_is_refused(start_gateway: StartGateway) -> None:
    url = start_gateway([strange_routes]).url
    assert post(url, b"hello", b"Content-Encoding: gzip").startswith(b"HTTP/1.1 400")


def test_access_log_tells_of_each_request_in_one_line(
    start_gateway: StartGateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "postroad.access")
    url = start_gateway([strange_routes], access_log="all").url
    get(url + "/echoes%0Astatus=200?key=secret")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "postroad.access"]
    assert line.startswith('method=GET path="/echoes\\nstatus=200" status=404 ms=')
    assert line.endswith("peer=127.0.0.1")
    assert "secret" not in line
    assert "\n" not in line


def test_access_log_may_be_json(start_gateway: StartGateway, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "postroad.access")
    url = start_gateway([strange_routes], access_log="all", access_log_format="json").url
    post(url, b"hello")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "postroad.access"]
    facts = json.loads(line)
    assert facts.pop("ms") >= 0
    assert facts.pop("dialect") in __name__
    assert facts == {
        "method": "POST",
        "path": "/echoes",
        "status": 200,
        "action": "echoes",
        "bytes_in": 5,
        "bytes_out": 1,
        "peer": "127.0.0.1",
    }


def test_access_log_tells_of_failures_only_unless_asked(
    start_gateway: StartGateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "postroad.access")
    url = start_gateway([strange_routes]).url
    get(url + "/nothing")
    get(url + "/fails")
    lines = [record.getMessage() for record in caplog.records if record.name == "postroad.access"]
    assert ["status=500" in line for line in lines] == [True]


@pytest.mark.parametrize("reset", [False, True], ids=["closes", "resets"])
@pytest.mark.parametrize("path", ["/", "/echoes", "/v1/topics/t/messages"])
def test_client_that_hangs_up_during_an_upload_is_no_failure(
    start_gateway: StartGateway, caplog: pytest.LogCaptureFixture, path: str, reset: bool
) -> None:
    gateway = start_gateway([strange_routes, sqs.routes, rest.routes], access_log="all")
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
    with connect(gateway.url) as sock:
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.sendall(f"{head}Content-Type: application/json\r\n\r\nhalf".encode())
        eventually(lambda: gateway.gateway.metrics.in_flight == 1, "it is not read")
    eventually(lambda: gateway.gateway.metrics.in_flight == 0, "it is still read")
    counted = [line for line in gateway.gateway.metrics.page().splitlines() if "requests_total{" in line]
    assert len(counted) == 1
    assert 'status="499"' in counted[0]
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_request_that_is_refused_as_soon_as_it_comes_leaves_no_traceback(
    broker: Node, tmp_path: Path
) -> None:
    """aiohttp's task for the connection has not begun by then."""
    with alone(tmp_path, "--bootstrap", broker.bootstrap) as gateway, contextlib.ExitStack() as stack:
        url = url_of(tmp_path)
        gateway.send_signal(signal.SIGSTOP)
        socks = [stack.enter_context(connect(url)) for _ in range(5)]
        for sock in socks:
            sock.sendall(AMBIGUOUS["two blanks after the method"])
        gateway.send_signal(signal.SIGCONT)  # they are accepted, and all that they have sent is there
        assert all(read_all(sock).startswith(b"HTTP/1.1 400 ") for sock in socks)
        assert get(url + "/healthz")[0] == 200
        gateway.terminate()
        told = gateway.communicate(timeout=PATIENCE_S)[1]
    assert "is refused with 400" in told
    assert "Traceback" not in told


async def test_peer_that_reads_nothing_of_its_answer_is_cut(broker: Node) -> None:
    """What waits for it would stay in memory for ever."""

    def large_routes(gateway: Gateway) -> list[web.RouteDef]:
        async def large(request: web.Request) -> web.Response:
            return web.Response(body=bytes(50_000_000))

        return [web.get("/large", large)]

    async with Gateway(GatewaySettings(broker.bootstrap, Http(idle_ms=1000))) as gateway:
        runner = web.AppRunner(create_app(gateway, [large_routes]), shutdown_timeout=1)
        await runner.setup()
        door = Door(runner, gateway.http, gateway.metrics)
        sock = bind("127.0.0.1", 0)
        await door.open(sock)
        _, writer = await asyncio.open_connection(*sock.getsockname(), limit=1024)
        assert isinstance(writer.transport, asyncio.Transport)
        writer.transport.pause_reading()
        writer.write(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        let_in = False
        for _ in range(1000):
            await asyncio.sleep(0.05)
            let_in = let_in or bool(door.connections)
            if let_in and not door.connections:
                break
        assert let_in
        assert not door.connections
        writer.close()
        door.close()
        await runner.cleanup()
