"""Dashboards and alerts ask for what gateways really tell: names and labels are on a real page of metrics."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from postroad.client import groups
from postroad.client.metadata import TopicPartition
from postroad.gateway import metrics, rest
from postroad.testing import Node
from tests.gateway.conftest import gateway_in_thread
from tests.gateway.console.conftest import api

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
DASHBOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
ALERT_TESTS = ALERTS.with_name("alerts_test.yml")
PROMTOOL = shutil.which("promtool")

SELECTOR = re.compile(r"\b(postroad_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"[^"]*"')
GROUPING = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
LABEL_VALUES = re.compile(r"label_values\((\w+), (\w+)\)")
ADDED = {"instance", "job"}  # by Prometheus itself

Known = dict[str, set[str]]
"""The labels of each metric."""


@pytest.fixture(scope="module")
def known(postroad_session: Node) -> Known:
    """What a gateway shows of a node that has something of everything."""
    with gateway_in_thread(postroad_session.bootstrap, [rest.routes, metrics.routes]) as gateway:
        topic, client = "metrics-of-all", gateway.gateway.client
        api(gateway.url, "POST", "/v1/topics", {"name": topic})
        api(gateway.url, "POST", "/v1/subscriptions", {"name": topic + "-sub", "topics": [topic]})
        api(gateway.url, "POST", f"/v1/topics/{topic}/messages", {"value": "x"})
        gateway.run(groups.commit(client, topic + "-group", {TopicPartition(topic, 0): 0}))
        with urllib.request.urlopen(f"{gateway.url}/metrics", timeout=60) as answer:
            page = answer.read().decode()
    found: Known = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", page, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def unknown(expression: str, known: Known) -> Iterator[str]:
    """What the expression asks for and nobody tells."""
    labels: set[str] = set(ADDED)
    for name, matchers in SELECTOR.findall(expression):
        if name not in known:
            yield name
            continue
        labels |= known[name]
        yield from (
            f"{name}{{{each}}}" for each in MATCHER.findall(matchers) if each not in known[name] | ADDED
        )
    for grouped in GROUPING.findall(expression):
        yield from (label for each in grouped.split(",") if (label := each.strip()) not in labels)
    if expression.count("(") != expression.count(")"):
        yield f"parentheses of {expression}"


def rules() -> list[Any]:
    found = yaml.safe_load(ALERTS.read_text())
    return [rule for group in found["groups"] for rule in group["rules"]]


def test_alerts_ask_for_what_there_is(known: Known) -> None:
    assert [each for rule in rules() for each in unknown(rule["expr"], known)] == []


def test_alerts_say_what_is_wrong_and_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names) > 10
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "remedy"}
        # What the texts show is left over by the expression.
        grouped = ",".join(GROUPING.findall(rule["expr"]))
        for label in re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])):
            assert label in grouped or "by (" not in rule["expr"], rule["alert"]


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    cases = [
        case for each in yaml.safe_load(ALERT_TESTS.read_text())["tests"] for case in each["alert_rule_test"]
    ]
    fires = {case["alertname"] for case in cases if case["exp_alerts"]}
    assert fires == {rule["alert"] for rule in rules()}


@pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool here (Debian: apt-get install prometheus)")
@pytest.mark.parametrize(("verb", "path"), [("check", ALERTS), ("test", ALERT_TESTS)])
def test_promtool_is_content(verb: str, path: Path) -> None:
    done = subprocess.run([str(PROMTOOL), verb, "rules", path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboards_ask_for_what_there_is(path: Path, known: Known) -> None:
    board = json.loads(path.read_text())
    missing = [
        each
        for panel in board["panels"]
        for target in panel["targets"]
        for each in unknown(target["expr"], known)
    ]
    assert missing == []
    for panel in board["panels"]:
        assert panel["title"]
        for target in panel["targets"]:
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            told = {label for name, _ in SELECTOR.findall(target["expr"]) for label in known[name]}
            assert shown <= told | ADDED, panel["title"]
    for variable in board["templating"]["list"]:
        for name, label in LABEL_VALUES.findall(variable["query"]):
            assert label in known[name]


def test_dashboards_are_told_apart() -> None:
    boards = [json.loads(path.read_text()) for path in DASHBOARDS]
    assert len({board["uid"] for board in boards}) == len({board["title"] for board in boards}) == 3
    for board in boards:
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    "expression",
    [
        "postroad_no_such_metric > 0",
        'postroad_node_up{topic="x"} == 0',
        "sum by (api) (postroad_node_up)",
        "sum(postroad_node_up",
    ],
)
def test_what_nobody_tells_is_found(known: Known, expression: str) -> None:
    assert list(unknown(expression, known))
