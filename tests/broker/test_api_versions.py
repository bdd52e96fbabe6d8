"""ApiVersions, and what is refused before any handler sees it."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest

from postroad.broker import api
from postroad.broker.later import Later
from postroad.wire import (
    access_keys,
    backup,
    callers,
    copy_letters,
    node_metrics,
    nodes,
    peek,
    peer,
    receipt_key,
    shared_transactions,
)
from postroad.wire.messages import api_versions, fetch, metadata, produce
from tests.broker.harness import Running
from tests.faults.raw import Closed, frame, header, request_content

UNSUPPORTED_VERSION = 35


def advertised(running: Running, version: int) -> dict[int, tuple[int, int]]:
    answer = running.call(api_versions, version, api_versions.ApiVersionsRequest("tests", "1.0"))
    assert answer.error_code == 0
    return {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}


@pytest.mark.parametrize("version", range(api_versions.MIN_VERSION, api_versions.MAX_VERSION + 1))
def test_every_version_lists_exactly_the_handlers_that_exist(shared: Running, version: int) -> None:
    # handled, but nothing that other clients should hear of
    ours = {peek.KEY, node_metrics.KEY, peer.KEY, copy_letters.KEY, receipt_key.KEY, nodes.KEY}
    ours |= {access_keys.KEY, callers.KEY, shared_transactions.KEY, backup.KEY}
    assert advertised(shared, version) == {one.KEY: one.VERSIONS for one in api.ALL if one.KEY not in ours}


@pytest.mark.parametrize(
    "later", [one for one in api.ALL if isinstance(one, Later)], ids=lambda one: one.__name__
)
def test_an_api_that_is_loaded_later_is_announced_as_its_file_says(later: Later) -> None:
    said = later.KEY, later.VERSIONS, later.FLEXIBLE_FROM, later.ADVERTISED
    file = later.load()
    assert said == (file.KEY, file.VERSIONS, file.FLEXIBLE_FROM, getattr(file, "ADVERTISED", True))


def test_produce_is_advertised_from_zero_so_that_librdkafka_goes_on_compressing(shared: Running) -> None:
    assert advertised(shared, 3)[produce.KEY][0] == 0


def test_apis_between_brokers_are_not_advertised(shared: Running) -> None:
    assert not {4, 5, 6, 7, 83, 84, 85, 86, 87} & advertised(shared, 3).keys()


@pytest.mark.parametrize("version", [api_versions.MAX_VERSION + 1, 99, 0x7FFF])
def test_an_unknown_version_is_answered_in_the_oldest_layout_with_our_own_range(
    shared: Running, version: int
) -> None:
    with shared.connect() as connection:
        connection.send(frame(header(api_versions.KEY, version, 77, True) + b"\x02a\x02b\0"))
        answer = connection.receive()
        assert struct.unpack_from(">i", answer) == (77,)
        decoded = api_versions.decode_response(answer[4:], 0)
        assert decoded.error_code == UNSUPPORTED_VERSION
        assert [(k.api_key, k.min_version, k.max_version) for k in decoded.api_keys] == [
            (api_versions.KEY, api_versions.MIN_VERSION, api_versions.MAX_VERSION)
        ]
        body = api_versions.ApiVersionsRequest()
        assert connection.call(api_versions, 0, body).error_code == 0  # the client asks again


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (produce.KEY, produce.MAX_VERSION + 1),
        (fetch.KEY, fetch.MIN_VERSION - 1),
        (metadata.KEY, metadata.MAX_VERSION + 1),
        (4, 0),
        (-1, 0),
        (999, 0),
    ],
)
def test_a_version_or_api_that_is_not_advertised_ends_the_connection(
    shared: Running, key: int, version: int
) -> None:
    with shared.connect() as connection:
        connection.send(frame(header(key, version, 1, False)))
        assert connection.is_closed_by_broker()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_produce_below_version_three_is_refused_though_it_is_advertised(
    shared: Running, version: int
) -> None:
    with shared.connect() as connection:
        connection.send(frame(header(produce.KEY, version, 1, False) + b"\0" * 12))
        assert connection.is_closed_by_broker()


def test_a_client_without_a_name_is_served(shared: Running) -> None:
    with shared.connect() as connection:
        connection.send(frame(struct.pack(">hhih", api_versions.KEY, 0, 5, -1)))
        assert connection.receive()[:4] == struct.pack(">i", 5)


def test_a_large_control_request_ends_the_connection_before_it_is_read(shared: Running) -> None:
    topics = [metadata.MetadataRequestTopic(name="x" * 249) for _ in range(20_000)]
    content = request_content(metadata, 12, metadata.MetadataRequest(topics=topics))
    with shared.connect() as connection:
        with suppress(Closed):  # perhaps while it is being sent
            connection.send(frame(content))
        assert connection.is_closed_by_broker()
