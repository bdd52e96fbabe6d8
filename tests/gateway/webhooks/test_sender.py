"""One request at a time: what the endpoint can't make the gateway do."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import ssl
import subprocess
import time
from pathlib import Path

import pytest
from aiohttp import connector, web

from postroad.gateway.webhooks import hook, sender
from postroad.gateway.webhooks.sender import ANSWER_BYTES_MAX, HookAnswer, Sender
from tests.gateway.webhooks.receivers import Endpoint, Got, endpoint, nobody


async def post(url: str, *, private: bool = True, timeout_s: float = 30.0, keep_bytes: int = 0) -> HookAnswer:
    async with Sender(private=private) as sender:
        return await sender.post(url, b"body", {"X-One": "1"}, timeout_s, keep_bytes)


async def test_body_and_headers_arrive() -> None:
    async with endpoint() as receiver:
        assert await post(receiver.url) == HookAnswer(204, "status 204")
    (got,) = receiver.got
    assert got.body == b"body"
    assert got.headers["X-One"] == "1"
    assert got.headers["Host"] == receiver.url.split("/")[2]
    assert got.headers["User-Agent"].startswith("Postroad")
    assert "Accept-Encoding" not in got.headers


async def test_redirects_are_not_followed() -> None:
    async with endpoint() as other:
        async with endpoint(lambda _: web.Response(status=307, headers={"Location": other.url})) as receiver:
            answer = await post(receiver.url)
        assert answer.status == 307
        assert not answer.is_success
        assert other.got == []


async def test_private_addresses_are_not_connected_to_by_number_or_by_name() -> None:
    async with endpoint() as receiver:
        port = receiver.url.split(":")[2].split("/")[0]
        for host in ("127.0.0.1", "localhost", "[::1]"):
            answer = await post(f"https://{host}:{port}/", private=False)
            assert answer == HookAnswer(0, "Web hooks go to addresses of the public internet only.")
        for host in ("2130706433", "0x7f.1", "127.1", "017700000001"):
            answer = await post(f"https://{host}:{port}/", private=False)
            assert answer.status == 0
        assert receiver.got == []


@pytest.mark.parametrize("text", ["127.0.0.1", "127.1", "2130706433", "0", "fd00:ec2::254%1", "::1"])
async def test_no_socket_is_made_for_an_address_that_is_not_allowed(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """However the library came to it: older ones connect to `127.1` as it is written, and ask no resolver."""
    monkeypatch.setattr(hook, "check_url", lambda url, private: None)
    monkeypatch.setattr(sender, "check_url", lambda url, private: None)
    monkeypatch.setattr(connector, "is_canonical_ipv4_address", lambda host: True, raising=False)
    async with endpoint() as receiver:
        port = receiver.url.split(":")[2].split("/")[0]
        host = f"[{text}]" if ":" in text else text
        answer = await post(f"http://{host}:{port}/", private=False)
        assert answer.status == 0
        assert receiver.got == []
        if "%" not in text:
            assert answer.reason == "Web hooks go to addresses of the public internet only."


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with endpoint() as proxy, endpoint() as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert (await post(receiver.url)).is_success
        assert proxy.got == []


async def test_an_endpoint_that_does_not_answer_is_given_up_in_time() -> None:
    async def sleep(_: Got) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async with endpoint(sleep) as receiver:
        began = time.monotonic()
        answer = await post(receiver.url, timeout_s=0.3)
        assert time.monotonic() - began < 20
    assert answer == HookAnswer(0, "no answer within 0.3 s")


async def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 8192)

    app = web.Application()
    app.router.add_post("/", drip)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        answer = await post(f"http://127.0.0.1:{runner.addresses[0][1]}/", keep_bytes=10)
    finally:
        await runner.cleanup()
    expected = HookAnswer(200, "status 200", None, b"x" * 10, False, "application/octet-stream")
    assert answer == expected


async def test_packed_answers_are_not_unpacked() -> None:
    bomb = gzip.compress(bytes(50_000_000))[: ANSWER_BYTES_MAX - 1]
    headers = {"Content-Encoding": "gzip"}
    async with endpoint(lambda _: web.Response(body=bomb, headers=headers)) as receiver:
        answer = await post(receiver.url, keep_bytes=100)
    assert answer.body == bomb[:100]


async def test_nobody_there_is_an_answer_too() -> None:
    with nobody() as url:
        answer = await post(url)
    assert answer.status == 0
    assert answer.reason


async def test_a_name_that_does_not_exist_is_an_answer_too() -> None:
    answer = await post("https://no-such-host.invalid/")
    assert answer.status == 0
    assert answer.reason


async def test_something_that_is_no_http_is_an_answer_too() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x00\x01 what?\r\n\r\n" * 100)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        answer = await post(f"http://127.0.0.1:{port}/")
    assert answer.status == 0
    assert answer.reason


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [("7", 7.0), ("0", 0.0), ("999999999999", 3600.0), ("soon", None), ("-3", None), ("", None)],
)
async def test_retry_after_is_read_within_bounds(text: str, wait_s: float | None) -> None:
    async with endpoint(lambda _: web.Response(status=503, headers={"Retry-After": text})) as receiver:
        assert (await post(receiver.url)).retry_after_s == wait_s


async def test_retry_after_may_be_a_date() -> None:
    date = "Fri, 31 Dec 2199 23:59:59 GMT"
    async with endpoint(lambda _: web.Response(status=503, headers={"Retry-After": date})) as receiver:
        assert (await post(receiver.url)).retry_after_s == 3600.0


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for `localhost`, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


async def test_tls_is_checked_against_the_name_though_an_address_is_connected_to(
    certificate: tuple[Path, Path],
) -> None:
    names: list[str | None] = []
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    server.sni_callback = lambda _, name, __: names.append(name)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))

    async def send(receiver: Endpoint, url: str, tls: ssl.SSLContext | None) -> HookAnswer:
        async with Sender(private=True, tls=tls) as sender:
            return await sender.post(url, b"", {}, 30.0)

    async with endpoint(tls=server) as receiver:
        assert (await send(receiver, receiver.url, trusting)).is_success
        assert names == ["localhost"]
        by_number = receiver.url.replace("localhost", "127.0.0.1")
        assert (await send(receiver, by_number, trusting)).status == 0
        assert (await send(receiver, receiver.url, None)).status == 0
        assert len(receiver.got) == 1
