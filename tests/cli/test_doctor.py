"""`postroad doctor`: one line for each thing it looks at, a remedy for what is wrong."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from postroad import __version__
from postroad.cli import main
from postroad.cli.diagnosis import EtcdSeen, Finding, NodeSeen, Seen, diagnose, is_old_etcd, read_page
from postroad.metrics.page import GAUGE, Page, labels
from postroad.system.certificate_times import valid_until
from postroad.testing import Node, cluster
from postroad.testing.etcd import etcd
from tests.clients.wait import PATIENCE_S, until
from tests.secure_node import secure_node

from .conftest import read_json

GB = 1024**3


def page(version: str = __version__, **values: float) -> str:
    """A node's page: a healthy one, but for these values."""
    made = Page(labels(node=1))
    made.family("postroad_node_info", GAUGE, "…").add(1, labels(version=version))
    healthy: dict[str, float] = {
        "node_disk_free_bytes": 50 * GB,
        "node_disk_bytes": 100 * GB,
        "node_open_files": 100,
        "node_open_files_max": 65_536,
        "node_time_seconds": 1000.0,
        "store_current": 1,
        "store_renewal_seconds": 0.002,
        "partitions_below_minimum": 0,
    }
    for name, value in {**healthy, **values}.items():
        made.family(f"postroad_{name}", GAUGE, "…").add(value)
    return made.text()


def seen_node(number: int = 1, version: str = __version__, **values: float) -> NodeSeen:
    address = f"10.0.0.{number}:9092"
    return NodeSeen(number, address, page(version, **values), asked_s=999.99, answered_s=1000.01)


def wrong(seen: Seen) -> list[Finding]:
    found = diagnose(seen)
    for finding in found:
        assert bool(finding.remedy) is not finding.ok, "what is wrong has a remedy"
    return [finding for finding in found if not finding.ok]


def test_healthy_cluster_has_nothing_wrong() -> None:
    seen = Seen(__version__, [seen_node(1), seen_node(2)], etcd=[EtcdSeen("10.0.0.1:2379", "3.5.17", True)])
    assert not wrong(seen)
    assert {"nodes", "clocks", "disk", "file limit", "versions", "partitions", "store"} == {
        finding.check for finding in diagnose(seen)
    }


@pytest.mark.parametrize(
    ("values", "check", "said"),
    [
        ({"node_time_seconds": 1000.7}, "clocks", "node 2 is 700 ms ahead"),
        ({"node_time_seconds": 998.0}, "clocks", "ahead of that of node 2"),
        ({"node_disk_free_bytes": 5 * GB}, "disk", "node 2 has 5.4 GB of 107.4 GB left (5%)"),
        ({"node_disk_free_bytes": 1 * GB, "node_disk_bytes": 8 * GB}, "disk", "1.1 GB of 8.6 GB"),
        ({"node_open_files_max": 1024}, "file limit", "node 2 has 100 of 1024 open"),
        ({"node_open_files": 60_000}, "file limit", "60000 of 65536"),
        ({"tls_certificate_days": 9.0}, "certificate", "node 2: 9 days left"),
        ({"tls_certificate_days": -3.0}, "certificate", "node 2: expired 3 days ago"),
        ({"tls_certificate_refused": 1}, "certificate", "could not read its new certificate"),
        ({"partitions_below_minimum": 4}, "partitions", "below min.insync.replicas: 4"),
        ({"store_current": 0}, "store", "node 2 can't renew its lease"),
        ({"store_renewal_seconds": 0.8}, "store", "took 0.80 s"),
        ({"version": "9.9"}, "versions", "node 2 9.9"),
    ],
)
def test_what_is_wrong_with_a_node_is_found(values: dict[str, Any], check: str, said: str) -> None:
    (found,) = wrong(Seen(__version__, [seen_node(1), seen_node(2, **values)]))
    assert found.check == check
    assert said in found.text


def test_slow_answer_is_no_wrong_clock() -> None:
    slow = NodeSeen(1, "a:1", page(node_time_seconds=1000.9), asked_s=1000.0, answered_s=1001.0)
    assert not wrong(Seen(__version__, [slow]))


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Seen("0.0", [seen_node()]), f"nodes run {__version__}, this command is 0.0"),
        (Seen(__version__, [seen_node()], gone=[3]), "node 3 is gone"),
        (Seen(__version__, [seen_node()], leaderless=["a/0"]), "without a leader: a/0"),
        (
            Seen(__version__, [seen_node()], under_replicated=[f"a/{n}" for n in range(9)]),
            "a/4 and 4 more",
        ),
        (Seen(__version__, [seen_node()], certificates=[("node.pem", 2.0)]), "node.pem: 2 days left"),
        (
            Seen(__version__, [seen_node()], etcd=[EtcdSeen("e:1", error="refused")]),
            "does not answer: refused",
        ),
        (Seen(__version__, [seen_node()], etcd=[EtcdSeen("e:1", "3.5.17")]), "is not healthy"),
        (Seen(__version__, [seen_node()], etcd=[EtcdSeen("e:1", "3.5.2", True)]), "is version 3.5.2"),
    ],
)
def test_what_is_wrong_with_a_cluster_is_found(seen: Seen, said: str) -> None:
    (found,) = wrong(seen)
    assert said in found.text


def test_node_that_does_not_answer_is_named_and_the_others_are_looked_at() -> None:
    silent = NodeSeen(2, "10.0.0.2:9092", error="no answer in time")
    (found,) = wrong(Seen(__version__, [seen_node(), silent]))
    assert found.text == "node 2 at 10.0.0.2:9092 does not answer: no answer in time"


@pytest.mark.parametrize(
    ("version", "is_old"),
    [
        *[("3.4.23", True), ("3.4.30", True), ("3.4.31", False), ("3.5.0", True), ("3.5.12", True)],
        *[("3.5.13", False), ("3.6.0", False), ("4.0.1", False), ("3.3.99", True), ("", False)],
    ],
)
def test_versions_of_etcd_that_end_leases_are_known(version: str, is_old: bool) -> None:
    assert is_old_etcd(version) is is_old


def test_lines_that_are_no_samples_are_passed_over() -> None:
    text = '# HELP a b\nnonsense\na_b{c="d\\"e",f="g h"} 1.5\nx notanumber\n'
    assert read_page(text) == {"a_b": [({"c": 'd\\"e', "f": "g h"}, 1.5)]}


# --- on real nodes


def test_node_in_order_has_nothing_wrong_but_what_its_machine_lacks(postroad_session: Node) -> None:
    environment = {"POSTROAD_BOOTSTRAP": postroad_session.bootstrap}
    done = CliRunner().invoke(main, ["doctor", "--json"], env=environment)
    result = read_json(done.stdout)
    assert done.exit_code == (0 if all(finding["ok"] for finding in result) else 1)
    assert {finding["check"] for finding in result if not finding["ok"]} <= {"disk", "file limit"}
    assert next(f["text"] for f in result if f["check"] == "versions") == f"{__version__} everywhere"


def test_dead_node_of_three_and_its_partitions_are_named() -> None:
    with cluster(3, {"topics.replicas": 3}) as running:
        environment = {"POSTROAD_BOOTSTRAP": running.bootstrap}

        def doctor() -> dict[str, list[Any]]:
            done = CliRunner().invoke(main, ["doctor", "--json"], env=environment)
            found: dict[str, list[Any]] = {}
            for finding in json.loads(done.stdout or "[]"):  # a node that just died may be asked
                if not finding["ok"]:
                    found.setdefault(finding["check"], []).append(finding["text"])
            assert done.exit_code == (1 if found or not done.stdout else 0)
            return found

        made = CliRunner().invoke(main, ["topic", "create", "orders"], env=environment)
        assert made.exit_code == 0, made.output
        assert "nodes" not in doctor()
        running.node(3).kill()
        until(lambda: any("node 3" in each for each in doctor().get("nodes", [])), "it is missed", PATIENCE_S)
        until(
            lambda: any(each.startswith("under-replicated: ") for each in doctor().get("partitions", [])),
            "what it held is named",
            PATIENCE_S,
        )


def test_etcd_and_certificates_are_looked_at(tmp_path: Path) -> None:
    with secure_node(tmp_path) as secured, etcd() as store:
        certificate = secured.data_dir / "tls" / "node.pem"
        text = next(iter((secured.data_dir / "tls").glob("node*.pem")), certificate).read_text()
        days = (valid_until(ssl.PEM_cert_to_DER_cert(text)) - time.time()) / 86_400
        arguments = ["--profile", str(secured.profile), "doctor", "--store", store.url(), "--json"]
        done = CliRunner().invoke(main, [*arguments, "--certificate", str(secured.ca)])
        found = json.loads(done.stdout)
    members = [finding["text"] for finding in found if finding["check"] == "store"]
    assert any(text.startswith("etcd at 127.0.0.1") for text in members)
    certificates = [finding["text"] for finding in found if finding["check"] == "certificate"]
    assert f"node 1: {days:.0f} days left" in certificates
    assert any(text.startswith(str(secured.ca)) for text in certificates)


def test_nothing_there_and_wrong_options_are_said() -> None:
    command = [sys.executable, "-m", "postroad", "doctor", "--bootstrap", "127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "nothing listens" in done.stderr
    for options in (["--store", "unix:///x"], ["--store", "http://x"], ["--certificate", "/nothing"]):
        assert CliRunner().invoke(main, ["doctor", *options]).exit_code == 2
