"""All metrics of a node as one page of text."""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import TYPE_CHECKING, Final

from postroad import __version__, process
from postroad.broker.metrics.cluster import write_cluster
from postroad.broker.metrics.requests import write_requests
from postroad.broker.metrics.subscriptions import write_subscriptions
from postroad.broker.metrics.topics import write_groups, write_partitions
from postroad.broker.metrics.transactions import write_transactions
from postroad.metrics.page import COUNTER, GAUGE, Page, labels

if TYPE_CHECKING:
    from postroad.broker.node import Node

STEPS_AT_ONCE: Final = 50  # then clients have their turn: some 2 ms


async def collect(node: Node) -> str:
    page = Page(labels(node=node.settings.node.id))
    _write_process(page, node)
    _write_tls(page, node)
    _write_security(page, node)
    write_requests(page, node.dispatcher.stats)
    write_transactions(page, node)
    steps = chain(
        write_cluster(page, node),
        write_partitions(page, node),
        write_groups(page, node),
        write_subscriptions(page, node),
    )
    for number, _ in enumerate(steps, 1):
        if number % STEPS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return page.text()


def _write_process(page: Page, node: Node) -> None:
    disk, logs = node.runtime.disk, str(node.directory.logs)
    page.family("postroad_node_info", GAUGE, "1, with the node's version.").add(
        1, labels(version=__version__)
    )
    for name, kind, meaning, value in (
        ("uptime_seconds", GAUGE, "Time since the node was started.", _uptime_s(node)),
        ("cpu_seconds_total", COUNTER, "Processor time of its process.", process.cpu_seconds()),
        ("memory_bytes", GAUGE, "Memory of its process that is in use.", process.resident_bytes()),
        ("connections", GAUGE, "Open connections of Kafka clients.", len(node.listener.connections)),
        ("disk_free_bytes", GAUGE, "Left for messages.", disk.free_bytes(logs)),
        ("disk_bytes", GAUGE, "The size of the file system.", disk.total_bytes(logs)),
        ("time_seconds", GAUGE, "Its clock, in seconds since 1970.", node.clock.now_ms() / 1000),
        ("open_files", GAUGE, "Files and sockets that its process has open.", process.open_files()),
        ("open_files_max", GAUGE, "How many it may have open; 0: no limit.", process.open_files_max() or 0),
    ):
        page.family(f"postroad_node_{name}", kind, meaning).add(value)


def _write_tls(page: Page, node: Node) -> None:
    """Only where a listener speaks TLS."""
    if node.certificates is None or node.handshakes is None:
        return
    page.family(
        "postroad_tls_certificate_days", GAUGE, "For how long the certificate in use is still valid."
    ).add(round(node.certificates.days_left(), 3))
    page.family(
        "postroad_tls_certificate_refused",
        GAUGE,
        "1 while the certificate's files are wrong and the one from before is in use.",
    ).add(1 if node.certificates.failures else 0)
    handshakes = page.family("postroad_tls_handshakes_total", COUNTER, "TLS handshakes, by how they ended.")
    handshakes.add(node.handshakes.done, labels(result="done"))
    handshakes.add(node.handshakes.failed, labels(result="failed"))


def _write_security(page: Page, node: Node) -> None:
    """Events only where clients are asked who they are, throttles only where there are quotas."""
    if node.security.enabled:
        family = page.family(
            "postroad_audit_events_total", COUNTER, "What the audit log tells of, left out or not."
        )
        for event, count in sorted(node.security.audit.events.items()):
            family.add(count, labels(event=event))
    throttles = node.quotas.throttles
    if throttles.count or node.image.quotas:
        for name, meaning, value in (
            ("count", "How often a client was told to wait, because of a quota.", throttles.count),
            ("seconds", "For how long clients were told to wait.", throttles.seconds),
        ):
            page.family(f"postroad_throttled_{name}_total", COUNTER, meaning).add(value)


def _uptime_s(node: Node) -> float:
    return (node.clock.monotonic_ms() - node.started_ms) / 1000
