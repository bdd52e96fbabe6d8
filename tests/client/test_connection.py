"""One connection, against peers that behave as badly as they can."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from postroad.client import Client
from postroad.client.connection import IN_FLIGHT_MAX, open_connection
from postroad.errors import (
    BrokerNotAvailable,
    ConfigurationError,
    NetworkException,
    PostroadError,
    ProtocolError,
    RequestTimedOut,
    UnsupportedVersion,
)
from postroad.system.sockets import connect
from postroad.testing import Node
from postroad.wire.messages import api_versions, metadata, sasl_handshake

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ALL_METADATA = metadata.MetadataRequest(topics=[])


@asynccontextmanager
async def listening(peer: Peer) -> AsyncIterator[int]:
    server = await asyncio.start_server(peer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def read_request(reader: asyncio.StreamReader) -> tuple[int, int, int]:
    """(api key, version, correlation) of the next request."""
    frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    key, version, correlation = struct.unpack_from(">hhi", frame)
    return key, version, correlation


def frame(correlation: int, body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 4, correlation) + body


def versions_answer(**fields: Any) -> bytes:
    ranges = [api_versions.ApiVersion(18, 0, 4), api_versions.ApiVersion(3, 0, 13)]
    answer = api_versions.ApiVersionsResponse(api_keys=ranges, **fields)
    return api_versions.encode_response(answer, 0 if fields else 4)


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    _, _, correlation = await read_request(reader)
    writer.write(frame(correlation, versions_answer()))


async def test_pipelined_calls_get_their_own_answers(postroad_session: Node) -> None:
    host, port = postroad_session.bootstrap.split(":")
    connection = await open_connection(connect, host, int(port), "test")
    requests = [
        metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name=f"no-{n}")], allow_auto_topic_creation=False
        )
        for n in range(3 * IN_FLIGHT_MAX)
    ]
    answers = await asyncio.gather(*(connection.call(metadata, request, 10) for request in requests))
    assert [answer.topics[0].name for answer in answers] == [f"no-{n}" for n in range(3 * IN_FLIGHT_MAX)]
    connection.close()
    with pytest.raises(NetworkException):
        await connection.call(metadata, ALL_METADATA, 1)


async def test_caller_that_gives_up_leaves_the_others_their_answers(postroad_session: Node) -> None:
    host, port = postroad_session.bootstrap.split(":")
    connection = await open_connection(connect, host, int(port), "test")
    impatient = asyncio.create_task(connection.call(metadata, ALL_METADATA, 10))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await connection.call(metadata, ALL_METADATA, 10)).brokers
    connection.close()


async def test_nobody_there_is_said_at_once() -> None:
    with pytest.raises(BrokerNotAvailable, match=r"nothing listens on 127\.0\.0\.1:1"):
        await open_connection(connect, "127.0.0.1", 1, "test")


async def test_unknown_host_is_said_at_once() -> None:
    with pytest.raises(BrokerNotAvailable, match=r"can't connect to no-such-host\.invalid:9092"):
        await open_connection(connect, "no-such-host.invalid", 9092, "test")


async def test_peer_that_hangs_up_is_a_network_error() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.close()

    async with listening(peer) as port:
        with pytest.raises(NetworkException, match="ended the connection"):
            await open_connection(connect, "127.0.0.1", port, "test")


async def test_silent_peer_is_given_up_and_fails_all_who_wait() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await reader.read()
        writer.close()

    async with listening(peer) as port:
        connection = await open_connection(connect, "127.0.0.1", port, "test")
        patient = asyncio.create_task(connection.call(metadata, ALL_METADATA, 30))
        await asyncio.sleep(0)
        with pytest.raises(RequestTimedOut, match=r"did not answer within 0.05 s"):
            await connection.call(metadata, ALL_METADATA, 0.05)
        with pytest.raises((NetworkException, RequestTimedOut)):
            await patient
        assert not connection.is_open


@pytest.mark.parametrize(
    "answer",
    [
        struct.pack(">ii", 4, 77),  # a correlation nobody used
        struct.pack(">i", -5),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">ih", 2, 0),  # too short for a header
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        frame(2, b"\0" + b"\xff" * 30),  # a body that is none
    ],
    ids=["correlation", "negative", "huge", "short", "http", "body"],
)
async def test_nonsense_ends_the_connection_with_a_clean_error(answer: bytes) -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await read_request(reader)
        writer.write(answer)
        await reader.read()
        writer.close()

    async with listening(peer) as port:
        connection = await open_connection(connect, "127.0.0.1", port, "test")
        with pytest.raises(PostroadError) as caught:
            await connection.call(metadata, ALL_METADATA, 20)
        assert isinstance(caught.value, ProtocolError | NetworkException)
        assert not connection.is_open


async def test_answer_nobody_asked_for_ends_the_connection() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        writer.write(frame(9, b""))
        await reader.read()
        writer.close()

    async with listening(peer) as port:
        connection = await open_connection(connect, "127.0.0.1", port, "test")
        async with asyncio.timeout(20):
            while connection.is_open:  # noqa: ASYNC110
                await asyncio.sleep(0.001)


async def test_old_node_answers_version_0_and_is_asked_again() -> None:
    asked: list[int] = []

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for code in (35, 0):
            _, version, correlation = await read_request(reader)
            asked.append(version)
            body = api_versions.ApiVersionsResponse(
                error_code=code, api_keys=[api_versions.ApiVersion(3, 0, 1)]
            )
            writer.write(frame(correlation, api_versions.encode_response(body, 0)))
        await reader.read()
        writer.close()

    async with listening(peer) as port:
        connection = await open_connection(connect, "127.0.0.1", port, "test")
        assert asked == [api_versions.MAX_VERSION, 0]
        assert connection.version(metadata) == 1
        with pytest.raises(UnsupportedVersion, match="does not offer SaslHandshake"):
            connection.version(sasl_handshake)
        connection.close()


async def test_versions_that_do_not_meet_are_named() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, _, correlation = await read_request(reader)
        body = api_versions.ApiVersionsResponse(api_keys=[api_versions.ApiVersion(3, 90, 99)])
        writer.write(frame(correlation, api_versions.encode_response(body, 4)))
        await reader.read()
        writer.close()

    async with listening(peer) as port:
        connection = await open_connection(connect, "127.0.0.1", port, "test")
        with pytest.raises(UnsupportedVersion, match="offers versions 90 to 99, this client knows 0 to 13"):
            connection.version(metadata)
        connection.close()


@pytest.mark.parametrize("text", ["", "host:port", "host:0", "a:99999"])
async def test_bootstrap_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        Client(text)
