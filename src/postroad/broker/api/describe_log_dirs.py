"""DescribeLogDirs (35), versions 1–5: how much disk each partition takes."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.partition import Partition
from postroad.broker.parts import HasDirectory, HasImage, HasPartitions, HasRuntime
from postroad.errors import ClusterAuthorizationFailed
from postroad.security.resources import Operation
from postroad.wire.messages import describe_log_dirs as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.DESCRIBE)


class Uses(HasDirectory, HasImage, HasPartitions, HasRuntime, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    disk, logs = node.runtime.disk, str(node.directory.logs)
    result = codec.DescribeLogDirsResult(
        log_dir=str(node.directory.logs.absolute()),
        topics=_topics(node, request),
        total_bytes=disk.total_bytes(logs),
        usable_bytes=disk.free_bytes(logs),
    )
    return codec.encode_response(codec.DescribeLogDirsResponse(results=[result]), call.version)


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    return codec.encode_response(codec.DescribeLogDirsResponse(error_code=error.code), call.version)


def _topics(node: Uses, request: codec.DescribeLogDirsRequest) -> list[codec.DescribeLogDirsTopic]:
    if request.topics is None:
        wanted = {name: node.partitions.of(name) for name in node.image.topics}
    else:
        wanted = {
            t.topic: [p for p in node.partitions.of(t.topic) if p.index in t.partitions]
            for t in request.topics
        }
    return [
        codec.DescribeLogDirsTopic(name, [_size(partition) for partition in partitions])
        for name, partitions in wanted.items()
        if partitions
    ]


def _size(partition: Partition) -> codec.DescribeLogDirsPartition:
    size = sum(each.log.size_bytes for each in partition.with_ledger())
    return codec.DescribeLogDirsPartition(partition.index, size)
