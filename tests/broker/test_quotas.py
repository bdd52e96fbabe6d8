"""Quotas: what was too much is told at once, and the connection is not heard for as long (KIP-219)."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kio.schema.index import api_key_map, schema_name_map

from postroad.broker import api
from postroad.broker.metrics.collect import collect
from postroad.broker.quotas import BUCKETS_MAX, LONGEST_S, THROTTLE_FIRST, UNDECIDED, Bucket, Quotas
from postroad.cluster.keys import QuotaEntity
from postroad.cluster.quotas import FETCH_RATE, PRODUCE_RATE, REQUEST_PERCENTAGE, alter_quota
from postroad.errors import InvalidRequest
from postroad.wire.messages import alter_client_quotas, describe_client_quotas, fetch, metadata, produce
from tests.broker.harness import Running, running_node
from tests.broker.secured import secured_node
from tests.clients.wait import until
from tests.faults.raw import RawConnection, batch_of, fetch_request, frame, produce_request, request_content

RATE = 10_000.0  # bytes a second
HALF = b"x" * 5_000  # of what may be taken in a second
TOO_MUCH = b"x" * 15_000  # half a second more than may be taken at once
DEBT_MS = 450  # that this leaves at least, with headers and all


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Running]:
    with running_node(tmp_path) as running:
        running.create("orders")
        yield running


def limit(node: Running, user: str | None, client: str | None, **limits: float | None) -> None:
    decision = partial(alter_quota, entity=QuotaEntity(user, client), changes=limits)
    node.run(node.node.topics.decide(decision))


def produced(connection: RawConnection, value: bytes) -> Any:
    answer = connection.call(produce, 9, produce_request("orders", batch_of(value)))
    assert answer.responses[0].partition_responses[0].error_code == 0
    return answer


def fetched(connection: RawConnection, offset: int = 0) -> Any:
    return connection.call(fetch, 12, fetch_request("orders", offset))


def passed_ms(began: float) -> float:
    """A loop's clock is that of its turn, in whole milliseconds."""
    return (time.monotonic() - began) * 1000 + 10


def test_who_sends_too_much_is_told_and_not_heard(node: Running) -> None:
    limit(node, None, "raw", **{PRODUCE_RATE: RATE})
    with node.connect() as connection:
        assert produced(connection, HALF).throttle_time_ms == 0
        began = time.monotonic()
        throttle_ms = produced(connection, TOO_MUCH).throttle_time_ms
        assert throttle_ms > DEBT_MS
        assert node.inside(connection).muting is not None
        throttles = node.node.quotas.throttles
        assert (throttles.count, throttles.seconds > DEBT_MS / 1000) == (1, True)
        assert 'postroad_throttled_count_total{node="1"} 1' in node.run(collect(node.node))
        connection.call(metadata, 12, metadata.MetadataRequest(topics=[]))  # sent at once, heard afterwards
        assert passed_ms(began) >= throttle_ms
        assert node.inside(connection).muting is None


def test_what_was_received_already_waits_too(node: Running) -> None:
    limit(node, None, "raw", **{PRODUCE_RATE: RATE})
    with node.connect() as connection:
        began = time.monotonic()
        first = connection.begin(produce, 9, produce_request("orders", batch_of(TOO_MUCH)))
        others = [connection.begin(metadata, 12, metadata.MetadataRequest(topics=[])) for _ in range(3)]
        throttle_ms = first().throttle_time_ms
        assert throttle_ms > DEBT_MS
        for answered in others:
            answered()
        assert passed_ms(began) >= throttle_ms


def test_a_run_of_repeated_requests_is_counted(node: Running) -> None:
    """The short way does not know of quotas, so it is closed to whoever has one."""
    with node.connect() as connection:
        requests = [
            frame(request_content(produce, 9, produce_request("orders", batch_of(b"x" * 1000)), number))
            for number in range(1, 31)
        ]
        connection.send(b"".join(requests[:10]))
        for _ in range(10):
            connection.receive()
        stats = node.node.dispatcher._produced
        until(lambda: stats.short_way > 0, "it is in use")
        before = stats.short_way
        limit(node, None, "raw", **{PRODUCE_RATE: RATE})
        began = time.monotonic()
        connection.send(b"".join(requests[10:]))  # twice what may be taken at once
        for _ in range(20):
            connection.receive()
        assert time.monotonic() - began >= 0.9
        assert stats.short_way == before


def test_a_fetch_that_brings_too_much_is_followed_by_a_pause(node: Running) -> None:
    node.publish("orders", *[HALF] * 4)
    limit(node, None, "raw", **{FETCH_RATE: RATE})
    with node.connect() as connection:
        began = time.monotonic()
        answers = [fetched(connection) for _ in range(4)]
        sizes = [len(answer.responses[0].partitions[0].records) for answer in answers]
        assert all(len(HALF) < size <= RATE for size in sizes)  # no more than a second's worth at once
        assert answers[0].throttle_time_ms == 0
        assert answers[3].throttle_time_ms > 0
        connection.call(metadata, 12, metadata.MetadataRequest(topics=[]))
        assert passed_ms(began) >= (sum(sizes) - RATE) / RATE * 1000


def test_one_who_waits_for_messages_is_counted_from_then_on(node: Running) -> None:
    """A parked fetch of the short way, when the quota comes."""
    node.publish("orders", b"first")
    request = partial(fetch_request, "orders", 1, max_wait_ms=20_000)
    with node.connect() as connection:
        for offset in (0, 0, 0):
            connection.call(fetch, 12, fetch_request("orders", offset))
        waiting = connection.begin(fetch, 12, request())
        until(lambda: len(node.partition("orders").readers) == 1, "it waits")
        limit(node, None, "raw", **{FETCH_RATE: RATE})
        assert node.inside(connection).quotas is UNDECIDED
        node.publish("orders", TOO_MUCH)
        waiting()
        assert fetched(connection, offset=1).throttle_time_ms > 0


def test_what_a_subscription_delivers_is_counted(node: Running) -> None:
    with node.session("workers", "orders") as session:
        session.fetch()
        limit(node, None, "raw", **{FETCH_RATE: 1000.0})
        node.publish("orders", TOO_MUCH)
        assert len(session.fetch_some().held) == 1
        assert node.inside(session.connection).muting is not None


def test_who_comes_again_still_owes_what_was_too_much(node: Running) -> None:
    limit(node, None, "raw", **{PRODUCE_RATE: 1000.0})
    with node.connect() as connection:
        first = produced(connection, TOO_MUCH).throttle_time_ms
    with node.connect() as connection:
        assert produced(connection, TOO_MUCH).throttle_time_ms > first


def test_time_of_the_node_is_counted(node: Running) -> None:
    limit(node, None, "raw", **{REQUEST_PERCENTAGE: 0.001})  # ten microseconds in a second
    with node.connect() as connection:
        answer = connection.call(metadata, 12, metadata.MetadataRequest(topics=None))
        assert answer.throttle_time_ms > 1000
        assert node.inside(connection).muting is not None


def test_a_quota_is_shared_by_all_connections_of_a_client_id(node: Running) -> None:
    limit(node, None, "raw", **{PRODUCE_RATE: RATE})
    with node.connect() as one, node.connect() as other:
        assert produced(one, TOO_MUCH).throttle_time_ms > DEBT_MS
        assert produced(other, b"small").throttle_time_ms > 0


def test_others_have_no_quota(node: Running) -> None:
    limit(node, None, "somebody", **{PRODUCE_RATE: 1.0})
    with node.connect() as connection:
        for _ in range(3):
            assert produced(connection, TOO_MUCH).throttle_time_ms == 0
        assert node.inside(connection).quotas is None


def test_a_quota_that_is_removed_holds_no_longer(node: Running) -> None:
    limit(node, None, "raw", **{PRODUCE_RATE: 100 * RATE})
    with node.connect() as connection:
        produced(connection, TOO_MUCH)
        assert node.inside(connection).quotas is not None
        limit(node, None, "raw", **{PRODUCE_RATE: None})
        assert node.inside(connection).quotas is None
        assert produced(connection, TOO_MUCH * 60).throttle_time_ms == 0


def test_a_node_stops_and_a_peer_goes_while_somebody_is_muted(node: Running) -> None:
    limit(node, None, "raw", **{PRODUCE_RATE: 1000.0})
    with node.connect() as connection:
        produced(connection, TOO_MUCH)
        inside = node.inside(connection)
        node.on_loop(lambda: inside.close("the test ends it"))
        assert connection.is_closed_by_broker()
    with node.connect() as connection:
        produced(connection, TOO_MUCH)
        node.stop()


def test_a_users_quota_goes_before_the_client_ids(tmp_path: Path) -> None:
    with secured_node(tmp_path) as node:
        node.add_user("shop")
        limit(node, None, "raw", **{PRODUCE_RATE: 1.0})
        limit(node, "shop", None, **{PRODUCE_RATE: 100 * RATE})
        with node.connect_as("shop") as connection:
            quotas = decided(node, connection)
            assert quotas.produce is not None
            assert quotas.produce.rate == 100 * RATE
        with node.connect_as("admin") as connection:
            assert decided(node, connection).produce.rate == 1.0


def decided(node: Running, connection: RawConnection) -> Any:
    """The limits of the connection, which are found with its first request."""
    connection.call(metadata, 12, metadata.MetadataRequest(topics=[]))
    return node.inside(connection).quotas


# --- the parts


def test_a_bucket_lets_through_its_rate_and_a_seconds_burst() -> None:
    bucket = Bucket(100.0)
    assert bucket.take(100, now_s=1000.0) == 0
    assert bucket.take(50, now_s=1000.0) == 0.5
    assert bucket.take(100, now_s=1001.0) == 0.5
    taken_until = [bucket.take(10, now_s=1002.0 + second / 10) for second in range(100)]
    assert max(taken_until) <= 0.1
    assert bucket.take(1e9, now_s=1020.0) == LONGEST_S


def test_client_ids_that_are_made_up_take_no_memory_without_bound(node: Running) -> None:
    limit(node, None, "", **{PRODUCE_RATE: RATE})
    quotas: Quotas = node.node.quotas

    def flood() -> int:
        for number in range(BUCKETS_MAX + 100):
            connection = _Client()
            quotas._limits_of(connection, f"client-{number}")  # type: ignore[arg-type]
        return max(len(quotas._limits), len(quotas._buckets))

    assert node.on_loop(flood) <= BUCKETS_MAX


class _Client:
    class principal:  # noqa: N801
        name = "somebody"
        is_machine = False


def test_answers_that_begin_with_their_throttle_time_are_known() -> None:
    """Held against Kafka's own schemas, for every version that is answered."""
    for handler in api.ALL:
        if handler.KEY not in api_key_map:
            continue
        name = api_key_map[handler.KEY]
        lowest, highest = handler.VERSIONS
        for version in schema_name_map[name]:
            if lowest <= version <= highest:
                module = importlib.import_module(f"kio.schema.{name}.v{version}.response")
                found: list[Any] = [each for each in vars(module).values() if is_dataclass(each)]
                response = [each for each in found if each.__name__.endswith("Response")][-1]
                names = [each.name for each in fields(response)]
                begins = names[:1] == ["throttle_time"]
                assert begins == (version >= THROTTLE_FIRST.get(handler.KEY, 1 << 15)), (name, version)


# --- the two APIs


def entity(**named: str | None) -> list[Any]:
    return [
        alter_client_quotas.RequestEntityData(kind.replace("_", "-"), name) for kind, name in named.items()
    ]


def altered(node: Running, named: list[Any], validate_only: bool = False, **limits: Any) -> Any:
    operations = [
        alter_client_quotas.OpData(name, value or 0.0, value is None) for name, value in limits.items()
    ]
    entry = alter_client_quotas.RequestEntryData(named, operations)
    request = alter_client_quotas.AlterClientQuotasRequest([entry], validate_only)
    return node.call(alter_client_quotas, 1, request).entries[0]


def described(node: Running, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    codec = describe_client_quotas
    request = codec.DescribeClientQuotasRequest([codec.ComponentData(*each) for each in components], strict)
    answer = node.call(codec, 1, request)
    assert answer.error_code == 0, answer.error_message
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries
    ]


def test_quotas_are_set_described_and_removed(node: Running) -> None:
    assert altered(node, entity(user="ann"), producer_byte_rate=5.0).error_code == 0
    assert altered(node, entity(user="ann", client_id=None), consumer_byte_rate=6.0).error_code == 0
    assert altered(node, entity(client_id="etl"), request_percentage=7.0).error_code == 0
    ann, any_client, etl = {"user": "ann"}, {"user": "ann", "client-id": None}, {"client-id": "etl"}
    assert len(described(node)) == 3
    assert described(node, ("user", 0, "ann"), strict=True) == [(ann, {"producer_byte_rate": 5.0})]
    assert [found for found, _ in described(node, ("user", 2, None))] == [any_client, ann]
    assert [found for found, _ in described(node, ("client-id", 1, None))] == [any_client]
    assert [found for found, _ in described(node, ("client-id", 0, "etl"))] == [etl]
    assert altered(node, entity(user="ann"), producer_byte_rate=None).error_code == 0
    assert described(node, ("user", 0, "ann"), strict=True) == []


def test_what_is_only_validated_changes_nothing(node: Running) -> None:
    assert altered(node, entity(user="ann"), validate_only=True, producer_byte_rate=5.0).error_code == 0
    assert altered(node, entity(user="ann"), validate_only=True, luck=5.0).error_code == InvalidRequest.code
    assert described(node) == []


@pytest.mark.parametrize(
    ("named", "limits"),
    [
        (entity(ip="10.0.0.1"), {"producer_byte_rate": 1.0}),
        (entity(), {"producer_byte_rate": 1.0}),
        (entity(user=""), {"producer_byte_rate": 1.0}),
        (entity(user="ann") + entity(user="bob"), {"producer_byte_rate": 1.0}),
        (entity(user="ann"), {"luck": 1.0}),
        (entity(user="ann"), {"producer_byte_rate": -1.0}),
        (entity(user="ann"), {"producer_byte_rate": float("nan")}),
        (entity(user="ann"), {"producer_byte_rate": float("inf")}),
    ],
)
def test_quotas_that_are_none_are_refused(node: Running, named: list[Any], limits: dict[str, Any]) -> None:
    result = altered(node, named, **limits)
    assert result.error_code == InvalidRequest.code
    assert result.error_message
    assert described(node) == []


@pytest.mark.parametrize(
    "component", [("ip", 2, None), ("user", 0, None), ("user", 3, None), ("user", 1, "x")]
)
def test_filters_that_are_none_are_refused(node: Running, component: tuple[str, int, str | None]) -> None:
    codec = describe_client_quotas
    request = codec.DescribeClientQuotasRequest([codec.ComponentData(*component)])
    assert node.call(codec, 1, request).error_code == InvalidRequest.code
