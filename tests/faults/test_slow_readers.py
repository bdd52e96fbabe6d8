"""A client that asks and never reads costs a bounded amount of memory and slows nobody."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from postroad.testing import Node
from postroad.wire.messages import api_versions, fetch, metadata
from tests.clients.confluent import producer, send_all

from .conftest import create_topic, memory_stays_flat, unharmed
from .raw import RawConnection, fetch_request, frame, request_content

READERS = 20
SMALL_BUFFER = 4096


@pytest.fixture(scope="module")
def big_topic(shared: Node) -> str:
    """40 MB, in batches of 1 MB."""
    create_topic(shared, "big")
    through = producer(shared.bootstrap, linger_ms=0)
    for _ in range(40):
        send_all(through, "big", [{"value": bytes(990_000)}])
    return "big"


def pipeline(connection: RawConnection, request: bytes, count: int) -> bool:
    """Send without ever reading; whether the broker stopped taking requests before `count` of them."""
    connection.socket.settimeout(0.5)
    try:
        for _ in range(count):
            connection.socket.sendall(request)
    except (TimeoutError, BrokenPipeError, ConnectionResetError):
        return True
    return False


def test_fetches_that_are_never_read_pile_up_nowhere(shared: Node, big_topic: str) -> None:
    request = frame(request_content(fetch, 12, fetch_request(big_topic, 0)))
    with ExitStack() as opened, unharmed(shared), memory_stays_flat(shared, grows_mb_max=60):
        for _ in range(READERS):
            pipeline(opened.enter_context(RawConnection(shared.bootstrap, SMALL_BUFFER)), request, 100)


def test_small_requests_that_are_never_read_stop_being_taken(shared: Node) -> None:
    """Each answer is larger than its request: unread answers must not grow without bound."""
    requests = [
        frame(request_content(api_versions, 3, api_versions.ApiVersionsRequest())),
        frame(request_content(metadata, 12, metadata.MetadataRequest(topics=None))),
    ]
    with ExitStack() as opened, unharmed(shared), memory_stays_flat(shared, grows_mb_max=60):
        for request in requests:
            connection = opened.enter_context(RawConnection(shared.bootstrap, SMALL_BUFFER))
            assert pipeline(connection, request * 1000, 1000), "a million requests were taken"


def test_reader_that_begins_to_read_gets_all_its_answers_in_order(shared: Node, big_topic: str) -> None:
    with RawConnection(shared.bootstrap, SMALL_BUFFER) as connection:
        count = 30
        for number in range(count):
            asked = fetch_request(big_topic, number, max_bytes=1)  # one batch of 1 MB each
            connection.send(frame(request_content(fetch, 12, asked, correlation_id=number)))
        for number in range(count):
            answer = connection.receive()
            assert int.from_bytes(answer[:4]) == number
            part = fetch.decode_response(answer[5:], 12).responses[0].partitions[0]
            assert part.error_code == 0
            assert int.from_bytes((part.records or b"")[:8]) == number
