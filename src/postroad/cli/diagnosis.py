"""What `postroad doctor` concludes from what it has seen: pure, one finding for each thing that is looked at.

A finding that is not well has a remedy. Thresholds stand here, each with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

CLOCKS_MS: Final = 500  # timestamps of messages, retention and delays go by the clock of the leader
DISK_SHARE: Final = 0.1  # compaction and a follower that copies anew need room
DISK_BYTES: Final = 2 * 1024**3
FILES_SHARE: Final = 0.8
FILES_MAX_MIN: Final = 16_384  # a partition with a queue has some ten files, a client one socket
CERTIFICATE_DAYS: Final = 21  # time to get new ones
STORE_S: Final = 0.5  # a quarter of the shortest lease
ETCD_MIN: Final = ((3, 4, 31), (3, 5, 13))  # older ones end leases that are alive (etcd #15247)

_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Finding(NamedTuple):
    """One line of the report."""

    check: str
    ok: bool
    text: str
    remedy: str = ""


class Sample(NamedTuple):
    labels: dict[str, str]
    value: float


@dataclass
class NodeSeen:
    """A node of the cluster: its page of metrics, and when its clock was read on ours."""

    id: int
    address: str
    page: str = ""
    error: str = ""  # why there is no page
    asked_s: float = 0.0  # on our clock
    answered_s: float = 0.0
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.samples = read_page(self.page)

    def value(self, name: str) -> float | None:
        found = self.samples.get(f"postroad_{name}")
        return found[0].value if found else None

    @property
    def version(self) -> str:
        found = self.samples.get("postroad_node_info")
        return found[0].labels.get("version", "") if found else ""

    @property
    def ahead_ms(self) -> tuple[float, float] | None:
        """How far its clock is ahead of ours, and by how much that may be wrong."""
        at = self.value("node_time_seconds")
        if at is None:
            return None
        middle, half = (self.asked_s + self.answered_s) / 2, (self.answered_s - self.asked_s) / 2
        return (at - middle) * 1000, half * 1000


@dataclass
class EtcdSeen:
    """A member of the coordination store."""

    endpoint: str
    version: str = ""
    is_healthy: bool = False
    error: str = ""


@dataclass
class Seen:
    """All that was looked at."""

    version: str  # of this program
    nodes: Sequence[NodeSeen]
    gone: Sequence[int] = ()  # nodes that hold replicas and are not registered
    leaderless: Sequence[str] = ()
    under_replicated: Sequence[str] = ()
    etcd: Sequence[EtcdSeen] = ()
    certificates: Sequence[tuple[str, float]] = ()  # files here, and the days that are left


def read_page(page: str) -> dict[str, list[Sample]]:
    """The samples of a metrics page, by name; lines that are none are passed over."""
    found: dict[str, list[Sample]] = {}
    for line in page.split("\n"):
        if line.startswith("#") or " " not in line:
            continue
        head, _, text = line.rpartition(" ")
        name, _, labels = head.partition("{")
        try:
            value = float(text)
        except ValueError:
            continue
        found.setdefault(name, []).append(Sample(dict(_LABEL.findall(labels)), value))
    return found


def diagnose(seen: Seen) -> list[Finding]:
    """In the order in which an operator would look."""
    answering = [node for node in seen.nodes if not node.error]
    findings = list(_nodes(seen))
    for check in (_clocks, _disks, _files, _versions, _certificates, _partitions, _store):
        findings += check(seen, answering)
    return findings


def _nodes(seen: Seen) -> Iterator[Finding]:
    wrong = [
        f"node {node.id} at {node.address} does not answer: {node.error}" for node in seen.nodes if node.error
    ]
    wrong += [f"node {node} is gone" for node in seen.gone]
    if wrong:
        remedy = (
            "start it, or look at its log; one that never comes back: postroad cluster drain, then remove"
        )
        yield Finding("nodes", False, "; ".join(wrong), remedy)
    else:
        yield Finding(
            "nodes", True, f"{_count(seen.nodes, 'node')} {'answers' if len(seen.nodes) == 1 else 'answer'}"
        )


def _clocks(_: Seen, nodes: Sequence[NodeSeen]) -> Iterator[Finding]:
    """Ours is one of them: whoever publishes from here stamps messages with it."""
    aheads = {f"node {node.id}": ahead for node in nodes if (ahead := node.ahead_ms) is not None}
    clocks = {"this machine": (0.0, 0.0), **aheads}
    first, last = min(clocks, key=lambda name: clocks[name][0]), max(clocks, key=lambda name: clocks[name][0])
    apart = clocks[last][0] - clocks[first][0]
    doubt = clocks[last][1] + clocks[first][1]
    if apart - doubt > CLOCKS_MS:
        text = f"the clock of {last} is {apart:.0f} ms ahead of that of {first}"
        yield Finding("clocks", False, text, "let chrony or systemd-timesyncd set all clocks")
    elif aheads:
        yield Finding("clocks", True, f"at most {max(apart, doubt):.0f} ms apart")


def _disks(_: Seen, nodes: Sequence[NodeSeen]) -> Iterator[Finding]:
    for node in nodes:
        free, total = node.value("node_disk_free_bytes"), node.value("node_disk_bytes")
        if free is None or not total:
            continue
        text = f"node {node.id} has {_bytes(free)} of {_bytes(total)} left ({free / total:.0%})"
        ok = free >= min(DISK_BYTES, total / 2) and free / total >= DISK_SHARE
        yield Finding("disk", ok, text, "" if ok else "shorten retention, add room, or drain the node")


def _files(_: Seen, nodes: Sequence[NodeSeen]) -> Iterator[Finding]:
    for node in nodes:
        used, most = node.value("node_open_files"), node.value("node_open_files_max")
        if used is None or most is None:
            continue
        if not most:
            yield Finding("file limit", True, f"node {node.id} has {used:.0f} open, without a limit")
            continue
        ok = most >= FILES_MAX_MIN and used / most < FILES_SHARE
        text = f"node {node.id} has {used:.0f} of {most:.0f} open"
        remedy = "" if ok else "raise the hard limit: LimitNOFILE=1048576 in its systemd unit, or ulimit -Hn"
        yield Finding("file limit", ok, text, remedy)


def _versions(seen: Seen, nodes: Sequence[NodeSeen]) -> Iterator[Finding]:
    versions = sorted({node.version for node in nodes if node.version})
    if len(versions) > 1:
        each = ", ".join(f"node {node.id} {node.version}" for node in nodes)
        remedy = "finish the update: what is new is used when all nodes have it (docs/cluster.md)"
        yield Finding("versions", False, f"nodes differ: {each}", remedy)
    elif versions and versions[0] != seen.version:
        text = f"nodes run {versions[0]}, this command is {seen.version}"
        yield Finding(
            "versions", False, text, f"pip install postroad=={versions[0]} here, or update the nodes"
        )
    elif versions:
        yield Finding("versions", True, f"{versions[0]} everywhere")


def _certificates(seen: Seen, nodes: Sequence[NodeSeen]) -> Iterator[Finding]:
    days = [
        (f"node {node.id}", left)
        for node in nodes
        if (left := node.value("tls_certificate_days")) is not None
    ]
    for name, left in [*days, *seen.certificates]:
        ok = left >= CERTIFICATE_DAYS
        text = f"{name}: {left:.0f} days left" if left > 0 else f"{name}: expired {-left:.0f} days ago"
        remedy = (
            "" if ok else "put a new one in its place (postroad cert make); nodes read it without a restart"
        )
        yield Finding("certificate", ok, text, remedy)
    for node in nodes:
        if node.value("tls_certificate_refused"):
            text = f"node {node.id} could not read its new certificate and goes on with the old one"
            yield Finding("certificate", False, text, "its log says what is wrong with the files")


def _partitions(seen: Seen, nodes: Sequence[NodeSeen]) -> Iterator[Finding]:
    remedies = {
        "without a leader": "start the nodes that hold them: postroad cluster status",
        "under-replicated": "find the node that is gone or slow: postroad cluster status",
        "below min.insync.replicas": "acks=all is refused: bring replicas back, see postroad cluster status",
    }
    below = sum(node.value("partitions_below_minimum") or 0 for node in nodes)
    wrong = {
        "without a leader": _some(seen.leaderless),
        "under-replicated": _some(seen.under_replicated),
        "below min.insync.replicas": f"{below:.0f}" if below else "",
    }
    for what, text in wrong.items():
        if text:
            yield Finding("partitions", False, f"{what}: {text}", remedies[what])
    if not any(wrong.values()):
        yield Finding("partitions", True, "all have their leaders and replicas")


def _store(seen: Seen, nodes: Sequence[NodeSeen]) -> Iterator[Finding]:
    for node in nodes:
        if node.value("store_current") == 0:
            text = f"node {node.id} can't renew its lease"
            yield Finding("store", False, text, "look at etcd, and at the network between it and the node")
        elif (slow := node.value("store_renewal_seconds") or 0) > STORE_S:
            text = f"renewing the lease of node {node.id} took {slow:.2f} s"
            yield Finding("store", False, text, "give etcd a disk of its own: each commit is a sync there")
    for member in seen.etcd:
        yield _member(member)


def _member(member: EtcdSeen) -> Finding:
    where = f"etcd at {member.endpoint}"
    if member.error:
        return Finding(
            "store", False, f"{where} does not answer: {member.error}", "start it, or replace the member"
        )
    if not member.is_healthy:
        remedy = "it has no leader: bring back enough of its members, etcdctl endpoint status"
        return Finding("store", False, f"{where} is not healthy", remedy)
    if is_old_etcd(member.version):
        remedy = "update to 3.4.31, 3.5.13 or later: older ones can end leases that are alive"
        return Finding("store", False, f"{where} is version {member.version}", remedy)
    return Finding("store", True, f"{where} is healthy, version {member.version}")


def is_old_etcd(version: str) -> bool:
    """Whether it is one of those whose stalled leader ends leases; a version that is none is not."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if found is None:
        return False
    numbers = (int(found[1]), int(found[2]), int(found[3]))
    for least in ETCD_MIN:
        if numbers[:2] == least[:2]:
            return numbers < least
    return numbers < ETCD_MIN[0]


def _some(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _count(found: Sequence[object], what: str) -> str:
    return f"{len(found)} {what}{'' if len(found) == 1 else 's'}"


def _bytes(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
