"""The nodes: how they do, who leads what, what is wrong; drains and preferred leaders."""

from __future__ import annotations

from typing import Final

from postroad.gateway.console import widgets, words
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import cluster
from postroad.gateway.rest.cluster import ClusterDetails, ClusterNode, Elected
from postroad.markup import Html, Node, tag

COLUMNS: Final = (
    "Node", "Address", "Rack", "State", "Version", "Leads", "Replicas", "Not in sync", "CPU", "Memory",
    "Disk free", "Connections",
)  # fmt: skip
WRONG_COLUMNS: Final = ("Topic", "Partition", "Leader", "Replicas", "In sync", "What is wrong")
MOVING_COLUMNS: Final = ("Topic", "Partition", "Replicas", "Comes to", "Leaves")
SHOWN_MAX: Final = 100
STATES: Final = {"serving": "good", "starting": "warn", "draining": "warn", "drained": "", "gone": "bad"}
DISK_LOW: Final = 0.1


@page("/console/cluster", "cluster")
async def cluster_page(visit: Visit) -> View:
    found: ClusterDetails = await visit.call(cluster.get_cluster)
    return View(
        "Cluster",
        [
            _figures(visit, found),
            widgets.section(
                "Nodes",
                widgets.table(
                    visit, "nodes", COLUMNS, [(str(each.id), _row(each)) for each in found.nodes],
                    numbers=[5, 6, 7, 8, 9, 10, 11], caption="Nodes",
                ),
                actions=[_elect(visit, found)],
            ),
            _racks(found),
            _drains(visit, found),
            _wrong(visit, found),
            _moving(visit, found),
        ],
    )  # fmt: skip


def _figures(visit: Visit, found: ClusterDetails) -> Html:
    offline, lagging = found.without_leader, found.under_replicated
    serving = sum(each.state == "serving" for each in found.nodes)
    return widgets.figures(
        widgets.figure(
            visit, "count-nodes", "Nodes", words.count(serving), f"of {len(found.nodes)} serve",
            "" if serving == len(found.nodes) else "warn",
        ),
        widgets.figure(visit, "count-partitions", "Partitions", words.count(found.partitions)),
        widgets.figure(
            visit, "offline", "Without a leader", words.count(offline), None, "bad" if offline else ""
        ),
        widgets.figure(
            visit, "lagging", "Under-replicated", words.count(lagging), None, "warn" if lagging else ""
        ),
        widgets.figure(visit, "moving", "Moving", words.count(len(found.moving))),
    )  # fmt: skip


def _row(node: ClusterNode) -> list[Node]:
    name: list[Node] = [str(node.id)]
    if node.is_controller:
        name += [" ", widgets.badge("controller")]
    return [
        name,
        words.NONE if node.host is None else f"{node.host}:{node.port}",
        node.rack or words.NONE,
        widgets.badge(node.state, STATES.get(node.state, "warn")),
        node.version or words.NONE,
        words.count(node.leads),
        words.count(node.replicas),
        words.count(node.lagging),
        words.NONE if node.cpu is None else f"{node.cpu * 100:.0f} %",
        words.size(node.memory_bytes),
        _disk(node),
        words.count(node.connections),
    ]


def _disk(node: ClusterNode) -> Node:
    if not node.disk_bytes or node.disk_free_bytes is None:
        return words.NONE
    text = f"{words.size(node.disk_free_bytes)} of {words.size(node.disk_bytes)}"
    return widgets.badge(text, "bad") if node.disk_free_bytes < DISK_LOW * node.disk_bytes else text


def _racks(found: ClusterDetails) -> Node:
    if len(found.racks) < 2:
        return None
    facts = [(rack or "no rack", words.plural(count, "node")) for rack, count in found.racks.items()]
    return widgets.section("Racks", widgets.facts(*facts))


def _wrong(visit: Visit, found: ClusterDetails) -> Html:
    rows: list[tuple[str, list[Node]]] = [
        (
            f"{each.topic}-{each.partition}",
            [
                widgets.link(each.topic, "topics", each.topic),
                str(each.partition),
                words.NONE if each.leader is None else str(each.leader),
                _ids(each.replicas),
                _ids(each.in_sync),
                widgets.badge(each.finding, "bad" if each.leader is None else "warn"),
            ],
        )
        for each in found.wrong[:SHOWN_MAX]
    ]
    return widgets.section(
        "Partitions that need attention",
        widgets.table(
            visit, "wrong", WRONG_COLUMNS, rows, numbers=[1, 2], caption="Partitions that need attention",
            empty="Every partition has a leader, and all of its replicas are in sync.",
        ),
    )  # fmt: skip


def _moving(visit: Visit, found: ClusterDetails) -> Html:
    rows: list[tuple[str, list[Node]]] = [
        (
            f"{each.topic}-{each.partition}",
            [
                widgets.link(each.topic, "topics", each.topic),
                str(each.partition),
                _ids(each.replicas),
                _ids(each.adding),
                _ids(each.removing),
            ],
        )
        for each in found.moving[:SHOWN_MAX]
    ]
    return widgets.section(
        "Partitions that are moving",
        widgets.table(
            visit, "moves", MOVING_COLUMNS, rows, numbers=[1], caption="Partitions that are moving",
            empty="Nothing is being moved.",
        ),
    )  # fmt: skip


def _ids(nodes: list[int]) -> str:
    return ", ".join(map(str, nodes)) or words.NONE


# --- what can be done


def _drains(visit: Visit, found: ClusterDetails) -> Html:
    rows: list[tuple[str, list[Node]]] = [
        (str(each.id), [str(each.id), _progress(visit, each), _drain(visit, each, found)])
        for each in found.nodes
    ]
    text = "A drained node gives its partitions to others, and gets nothing new until that is cancelled."
    return widgets.section(
        "Drains", tag("p", text, class_="soft"),
        widgets.still_table("drains", ("Node", "Progress", ""), rows, caption="Drains"),
    )  # fmt: skip


def _progress(visit: Visit, node: ClusterNode) -> Html:
    if node.state not in ("draining", "drained"):
        text = f"Not drained: it has {words.plural(node.replicas, 'replica')}."
    elif node.state == "drained":
        text = "It is empty."
    else:
        text = f"{words.plural(node.replicas, 'replica')} left, {node.leaving} on their way"
        text += f", {node.stuck} that no other node can take." if node.stuck else "."
    return visit.live(f"drain-{node.id}", "span", text)


def _drain(visit: Visit, node: ClusterNode, found: ClusterDetails) -> Node:
    if not visit.may_alter_cluster:
        return None
    key = str(node.id)
    if node.state in ("draining", "drained"):
        form = visit.form("cancel", key)
        if not visit.access.is_guarded:
            return form.button("Cancel the drain", label_for=f"of node {key}")
        return form.dialog(
            "Cancel the drain…", f"Cancel the drain of node {key}",
            tag("p", "It may have partitions again. What has left it stays where it is."),
            form.own_password(), submit="Cancel the drain", label_for=f"of node {key}",
        )  # fmt: skip
    others = sum(each.state == "serving" and each.id != node.id for each in found.nodes)
    form = visit.form("drain", key)
    effect = (
        f"{words.plural(node.replicas, 'replica')} go to {words.plural(others, 'other node')}. Clients go on "
        "meanwhile; the messages are copied over the network."
        if others
        else "There is no other node that serves: nothing can leave it, and it gets nothing new."
    )
    return form.dialog(
        "Drain…", f"Drain node {key}", tag("p", effect), form.own_password(), submit="Drain", danger=True,
        label_for=f"node {key}",
    )  # fmt: skip


@cluster_page.action("drain")
async def drain(visit: Visit, form: Form) -> Done:
    node = form.get("which", "")
    await visit.change(cluster.drain_node, node=node)
    return Done(f"Node {node} is being drained.")


@cluster_page.action("cancel")
async def cancel(visit: Visit, form: Form) -> Done:
    node = form.get("which", "")
    await visit.change(cluster.cancel_drain, node=node)
    return Done(f"Node {node} may have partitions again. What has left it stays where it is.")


def _elect(visit: Visit, found: ClusterDetails) -> Node:
    if not visit.may_alter_cluster or len(found.nodes) < 2:
        return None
    text = (
        f"{words.plural(found.not_preferred, 'partition')} are led by another node than their first replica. "
        "Those whose first replica is in sync change their leader; clients notice within a moment."
    )
    form = visit.form("elect")
    return form.dialog(
        "Elect preferred leaders…", "Elect preferred leaders", tag("p", text), form.own_password(),
        submit="Elect",
    )  # fmt: skip


@cluster_page.action("elect")
async def elect(visit: Visit, form: Form) -> Done:
    done: Elected = await visit.change(cluster.elect_preferred_leaders)
    failed = f" {len(done.failed)} could not: {done.failed[0]}" if done.failed else ""
    return Done(f"{words.plural(done.elected, 'partition')} got their preferred leader.{failed}")
