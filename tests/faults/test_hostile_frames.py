"""Bytes that are no Kafka request end their own connection, cost no memory and disturb nobody."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from importlib import import_module
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from postroad.testing import Node, node
from postroad.wire.messages import MODULES, api_versions
from postroad.wire.primitives import Message
from tests.clients.wait import until

from .conftest import create_topic, memory_stays_flat, unharmed
from .raw import Closed, RawConnection, batch_of, frame, header, produce_request, request_content

NOT_FRAMES = {
    "negative length": struct.pack(">i", -1),
    "smallest length": struct.pack(">i", -(2**31)),
    "empty frame": struct.pack(">i", 0),
    "frame without a whole header": frame(b"\0\x12\0"),
    "largest length": struct.pack(">i", 2**31 - 1) + b"x" * 100,
    "length above the limit": struct.pack(">i", 100 * 1024 * 1024 + 1) + b"x" * 100,
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP POST": b"POST /topics HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    "TLS ClientHello": bytes.fromhex("16030100a5010000a10303") + bytes(200),
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "zeros": bytes(1000),
    "unknown API": frame(header(999, 0, 1, flexible=False)),
    "negative API": frame(header(-1, 0, 1, flexible=False)),
    "an API between brokers": frame(header(4, 0, 1, flexible=False) + bytes(50)),
    "unknown version": frame(header(3, 99, 1, flexible=True) + bytes(50)),
    "Produce below version 3": frame(header(0, 2, 1, flexible=False) + bytes(50)),
    "array of 2 billion": frame(header(3, 1, 1, flexible=False) + struct.pack(">i", 2**31 - 1)),
    "compact array of 2 billion": frame(header(3, 9, 1, flexible=True) + b"\xff\xff\xff\xff\x0f"),
    "varint that never ends": frame(header(3, 9, 1, flexible=True) + b"\xff" * 50),
    "client id longer than the frame": frame(struct.pack(">hhih", 3, 1, 1, 30_000) + b"short"),
}


@pytest.mark.parametrize("name", NOT_FRAMES)
def test_connection_ends_at_what_is_no_request(shared: Node, name: str) -> None:
    with RawConnection(shared.bootstrap) as connection:
        connection.send(NOT_FRAMES[name])
        assert connection.is_closed_by_broker()
    assert_serves(shared)


@pytest.mark.parametrize("version", [99, -1, 32767])
def test_unknown_version_of_api_versions_is_answered_in_the_oldest_layout(shared: Node, version: int) -> None:
    with RawConnection(shared.bootstrap) as connection:
        connection.send(frame(header(18, version, 7, flexible=True)))
        answer = connection.receive()
        assert struct.unpack_from(">ih", answer) == (7, 35)
        known = api_versions.decode_response(answer[4:], 0)
        assert [key.api_key for key in known.api_keys if key.api_key == 18] == [18]
        # The connection goes on, as KIP-511 wants.
        assert connection.call(api_versions, 0, api_versions.ApiVersionsRequest()).error_code == 0


def test_request_cut_anywhere_ends_only_its_connection(shared: Node) -> None:
    """The declared length is right, the content is cut: every place inside a Produce request."""
    content = request_content(_module("produce"), 9, produce_request("cut", bytes(batch_of(b"value"))))
    with unharmed(shared):
        for end in range(len(content) - 1):  # the last byte only says that no tagged fields follow
            with RawConnection(shared.bootstrap) as connection:
                connection.send(frame(content[:end]))
                assert connection.is_closed_by_broker(), f"cut after {end} of {len(content)} bytes"


FUZZED_CONNECTIONS = 3000
FUZZ_SEED = 20


def test_fuzzed_requests_get_an_answer_or_an_end_and_memory_stays_flat(shared: Node) -> None:
    frames = _mutated_frames(random.Random(FUZZ_SEED), served_apis(shared))
    with unharmed(shared), memory_stays_flat(shared, grows_mb_max=80):
        for _ in range(FUZZED_CONNECTIONS):
            with RawConnection(shared.bootstrap) as connection, suppress(Closed):
                for _ in range(4):
                    connection.send(next(frames))
    assert_serves(shared)
    assert "Traceback" not in shared.log_file.read_text(), "the node met an error that it did not expect"


def served_apis(running: Node) -> set[int]:
    with RawConnection(running.bootstrap) as connection:
        answer = connection.call(api_versions, 0, api_versions.ApiVersionsRequest())
    return {served.api_key for served in answer.api_keys}


HEADER_BYTES = len(header(0, 0, 0, flexible=False))


def _mutated_frames(random_: random.Random, apis: set[int]) -> Iterator[bytes]:
    """Requests of every served API and version with bytes changed, cut out, doubled or added."""
    seeds = list(_good_contents(apis))
    while True:
        content = bytearray(random_.choice(seeds))
        for _ in range(random_.randint(1, 4)):
            place = random_.randrange(HEADER_BYTES, len(content) + 1)
            match random_.randrange(4):
                case 0:
                    content[place : place + 1] = bytes(
                        [random_.choice((0, 1, 0x7F, 0x80, 0xFF, random_.randrange(256)))]
                    )
                case 1:
                    del content[place : place + random_.randint(1, 4)]
                case 2:
                    content[place:place] = content[place : place + random_.randint(1, 8)]
                case _:
                    content[place:place] = random_.randbytes(random_.randint(1, 8))
        yield frame(bytes(content))


MAKERS_OF_PARTITIONS = {19, 37}  # a changed count might be a good request for thousands of partitions


def _good_contents(apis: set[int]) -> Iterator[bytes]:
    for key in sorted(apis):
        api = _module(MODULES[key])
        kind = getattr(api, f"{api.NAME}Request")
        request = kind() if key in MAKERS_OF_PARTITIONS else _filled(kind)
        for version in range(api.MIN_VERSION, api.MAX_VERSION + 1):
            with suppress(ValueError):  # a value that this version has no bytes for
                yield request_content(api, version, request, correlation_id=key)
    yield request_content(_module("produce"), 9, produce_request("fuzzed", bytes(batch_of(b"v" * 50))))


def _filled(kind: Any) -> Any:
    """A message with one element in each of its arrays, and a name in each of its strings."""
    message, hints = kind(), get_type_hints(kind)
    for field in kind.__slots__:
        options = [hints[field], *get_args(hints[field])]  # `X | None` has X among its arguments
        arrays = [option for option in options if get_origin(option) is list]
        if arrays:
            (element,) = get_args(arrays[0])
            setattr(message, field, [_filled(element) if issubclass(element, Message) else element()])
        elif str in options:
            setattr(message, field, "fuzzed")
    return message


def _module(name: str) -> Any:
    return import_module(f"postroad.wire.messages.{name}")


def test_declared_length_is_not_allocated(shared: Node) -> None:
    """Fifty clients announce 90 MB each and send a few bytes of it."""
    with ExitStack() as opened, memory_stays_flat(shared, grows_mb_max=40), unharmed(shared):
        for _ in range(50):
            connection = opened.enter_context(RawConnection(shared.bootstrap))
            connection.send(
                struct.pack(">i", 90 * 1024 * 1024) + header(0, 9, 1, flexible=True) + bytes(1000)
            )


def test_partial_frames_end_at_their_deadline_and_idle_connections_do_not() -> None:
    with node({"limits.frame_ms": 1000}) as running, ExitStack() as opened:
        idle = opened.enter_context(RawConnection(running.bootstrap))
        stalled = [opened.enter_context(RawConnection(running.bootstrap)) for _ in range(50)]
        for number, connection in enumerate(stalled):
            whole = frame(header(18, 0, 1, flexible=False))
            connection.send(whole[: 1 + number % (len(whole) - 1)])
        with unharmed(running):
            assert all(connection.is_closed_by_broker() for connection in stalled)
        assert idle.call(api_versions, 0, api_versions.ApiVersionsRequest()).error_code == 0


def test_dripping_bytes_do_not_put_the_deadline_off() -> None:
    with node({"limits.frame_ms": 1000}) as running, RawConnection(running.bootstrap) as connection:
        connection.send(struct.pack(">i", 10_000))
        until(lambda: _drip_finds_it_closed(connection), "the frame's deadline has passed")


def _drip_finds_it_closed(connection: RawConnection) -> bool:
    try:
        connection.send(b"\0")
    except Closed:
        return True
    return connection.is_closed_by_broker(within_s=0.1)


def test_more_connections_than_allowed_are_closed_and_the_others_go_on() -> None:
    with node({"limits.connections_per_address_max": 20}) as running, ExitStack() as opened:
        first = [opened.enter_context(RawConnection(running.bootstrap)) for _ in range(20)]
        for connection in first:
            connection.call(api_versions, 0, api_versions.ApiVersionsRequest())
        extra = opened.enter_context(RawConnection(running.bootstrap))
        assert extra.is_closed_by_broker()
        for connection in first:
            connection.call(api_versions, 0, api_versions.ApiVersionsRequest())
        first[0].socket.close()
        _reconnects(running)


def _reconnects(running: Node) -> None:
    def served() -> bool:
        with RawConnection(running.bootstrap) as connection:
            try:
                return connection.call(api_versions, 0, api_versions.ApiVersionsRequest()).error_code == 0
            except Closed:
                return False

    until(served, "a place became free")


def assert_serves(running: Node) -> None:
    with RawConnection(running.bootstrap) as connection:
        assert connection.call(api_versions, 3, api_versions.ApiVersionsRequest()).error_code == 0


def test_topic_stays_usable_after_all_this(shared: Node) -> None:
    create_topic(shared, "still-here")
    with unharmed(shared):
        assert_serves(shared)
