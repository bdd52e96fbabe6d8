"""TLS on both sides, and what TLS and rights cost the same node: producing, consuming, one message a request.

librdkafka is the client everywhere, and encrypts, too: on the same cores its part is in all figures, least in
the server's CPU.
"""

from __future__ import annotations

from functools import partial

from benchmarks import logs
from benchmarks.secured_servers import KafkaTls, PostroadRights, PostroadTls
from benchmarks.servers import Mode, Postroad
from benchmarks.workload import Part, Row, Workload


def _workloads(part: Part, servers: tuple[str, ...], *goals: float) -> tuple[Workload, ...]:
    """Goals: of producing, consuming, and requests."""
    workload = partial(Workload, modes=(Mode.PAGE_CACHE,), part=part, only=servers)
    produce, consume, single = goals
    cpu = Row(f"server CPU for {logs.CPU_MESSAGES:,} messages of 1 KB produced", "s", more_is_better=False)
    return (
        workload(
            f"{part.word}-produce-1k",
            (Row("produce 1 KB", "MB/s", True, produce), cpu),
            logs.produce_kilobytes,
        ),
        workload(
            f"{part.word}-consume-1k", (Row("consume 1 KB", "MB/s", True, consume),), logs.consume_kilobytes
        ),
        workload(
            f"{part.word}-single",
            (Row("one message a request, 5 in flight", "requests/s", True, single),),
            logs.single,
        ),
    )


WORKLOADS: tuple[Workload, ...] = (
    *_workloads(Part.TLS, (PostroadTls.name, KafkaTls.name), 1.2, 0.8, 2.0),
    *_workloads(Part.TLS_PRICE, (PostroadTls.name, Postroad.name), 0.5, 0.35, 0.7),
    *_workloads(Part.RIGHTS, (PostroadRights.name, Postroad.name), 0.99, 0.99, 0.99),
)
