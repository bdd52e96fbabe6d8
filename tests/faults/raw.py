"""Kafka's protocol by hand: frames as we like them, right or wrong.

    request    int32 length, int16 api key, int16 version, int32 correlation id, string client id,
               (flexible versions: tagged fields), body
    answer     int32 length, int32 correlation id, (flexible versions: tagged fields), body

An ApiVersions answer never has tagged fields in its header, whatever its version.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any, Self

from postroad.wire.messages import api_versions, fetch, metadata, produce
from postroad.wire.records import Record, encode_batch

CLIENT_ID = b"raw"
ANSWER_S = 25.0  # below the 30 s in which a request must be complete


class Closed(Exception):
    """The broker ended the connection."""


def frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def header(api_key: int, version: int, correlation_id: int, flexible: bool) -> bytes:
    head = struct.pack(">hhih", api_key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID
    return head + b"\0" if flexible else head


def request_content(api: ModuleType, version: int, body: Any, correlation_id: int = 1) -> bytes:
    """What goes into a frame for this request of a generated message module."""
    head = header(api.KEY, version, correlation_id, version >= api.FLEXIBLE_FROM)
    return head + api.encode_request(body, version)


class RawConnection:
    """A blocking connection; every wait has a deadline."""

    def __init__(self, bootstrap: str, receive_buffer: int | None = None) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(ANSWER_S)
        self.socket.connect((host, int(port)))
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed from error

    def receive(self) -> bytes:
        """The content of the next frame."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def call(self, api: ModuleType, version: int, body: Any) -> Any:
        """Send one request and decode its answer."""
        return self.begin(api, version, body)()

    def begin(self, api: ModuleType, version: int, body: Any) -> Callable[[], Any]:
        """Send one request; what is handed back waits for its answer and decodes it."""
        self._correlation_id += 1
        expected = self._correlation_id
        self.send(frame(request_content(api, version, body, expected)))

        def answered() -> Any:
            answer = self.receive()
            (correlation_id,) = struct.unpack_from(">i", answer)
            assert correlation_id == expected
            tagged = version >= api.FLEXIBLE_FROM and api is not api_versions
            return api.decode_response(answer[5 if tagged else 4 :], version)

        return answered

    def is_closed_by_broker(self, within_s: float = ANSWER_S) -> bool:
        """Whatever is still on its way is thrown away; True as soon as the broker ends the connection."""
        deadline = time.monotonic() + within_s
        while (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                if not self.socket.recv(1 << 16):
                    return True
            except TimeoutError:
                return False
            except ConnectionResetError:
                return True
        return False

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                part = self.socket.recv(min(count - len(data), 1 << 20))
            except ConnectionResetError as error:
                raise Closed from error
            if not part:
                raise Closed
            data += part
        return bytes(data)


# --- requests that several tests send -------------------------------------------------------------


def batch_of(*values: bytes, key: bytes | None = b"key", **fields: Any) -> bytearray:
    """A good batch, of one record for each value."""
    now = int(time.time() * 1000)
    records = [Record(offset, now, key, value) for offset, value in enumerate(values)]
    return encode_batch(records, **fields)


def produce_request(topic: str, records: bytes | bytearray | None, partition: int = 0, acks: int = -1) -> Any:
    data = produce.PartitionProduceData(index=partition, records=records)
    topics = [produce.TopicProduceData(name=topic, partition_data=[data])]
    return produce.ProduceRequest(acks=acks, timeout_ms=20_000, topic_data=topics)


def send_batch(connection: RawConnection, topic: str, records: bytes | bytearray | None, **more: Any) -> Any:
    """The partition's answer to this batch: `error_code`, `base_offset`, `error_message`."""
    answer = connection.call(produce, 9, produce_request(topic, records, **more))
    return answer.responses[0].partition_responses[0]


def fetch_request(
    topic: str, offset: int, partition: int = 0, max_wait_ms: int = 0, max_bytes: int = 1 << 26
) -> Any:
    wanted = fetch.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [fetch.FetchTopic(topic=topic, partitions=[wanted])]
    return fetch.FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=max_bytes, topics=topics)


def fetch_at(connection: RawConnection, topic: str, offset: int, partition: int = 0) -> Any:
    """The partition's answer: `error_code`, `high_watermark`, `records`."""
    answer = connection.call(fetch, 12, fetch_request(topic, offset, partition))
    return answer.responses[0].partitions[0]


def metadata_of(connection: RawConnection, *topics: str, create: bool = True) -> Any:
    asked = [metadata.MetadataRequestTopic(name=name) for name in topics]
    request = metadata.MetadataRequest(topics=asked, allow_auto_topic_creation=create)
    return connection.call(metadata, 12, request)
