"""What is in `deploy/` is what its readers take it for, as far as that shows without a container engine.

Helm renders its chart, hadolint reads the Dockerfile, systemd its units, and the schemas of Kubernetes and
Compose judge the rest. Commands and settings that are named there are held against our own.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner

from postroad.cli import main
from postroad.client.bootstrap import read as read_bootstrap
from postroad.cluster.store_address import EtcdAddress, parse
from postroad.config import load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "postroad"
UNITS = sorted((DEPLOY / "systemd").iterdir())
COMPOSE = sorted(DEPLOY.glob("compose*.yaml"))
BIN = Path(sys.executable).parent
# Settings of the command line, not of a node.
NO_SETTINGS = {"POSTROAD_BOOTSTRAP", "POSTROAD_BACKUP", "POSTROAD_PROFILE"}
OPEN = ("insecure=true", "etcd.endpoints={etcd-0:2379,etcd-1:2379,etcd-2:2379}")
BACKED_UP = ("backup.url=s3://backups/here", "backup.keep={--keep-days=14,--keep-monthly=12}")
SECURED = (
    *("security.enabled=true", "tls.secret=tls", "security.masterKeySecret=key", "etcd.tlsSecret=etcd"),
    *(
        "etcd.endpoints={etcd-0:2379}",
        "backup.url=s3://backups/here",
        "backup.secret=aws",
        "backup.keep={--keep-last=9}",
    ),
    *(
        "gateway.replicas=3",
        "antiAffinity=preferred",
        "storage.className=fast",
        "imagePullSecrets[0].name=me",
    ),
)


def tool(name: str) -> str:
    """Ours from the environment; tools that are packaged for x86 alone are not there elsewhere."""
    found = BIN / name
    if not found.exists():
        pytest.skip(f"there is no {name} here")
    return str(found)


def call(*command: str, code: int = 0) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


# --- settings and commands


INSECURE = {"kafka.insecure": "true", "http.insecure": "true"}  # what --insecure sets


def settings_in(environment: dict[str, str], command: Sequence[str] = ()) -> None:
    """A node takes all of them, or says which it does not know."""
    given = {name: value for name, value in environment.items() if name not in NO_SETTINGS}
    load(environment=given, flags=INSECURE if "--insecure" in command else {})


def check_command(arguments: Sequence[str]) -> None:
    """Our command line reads the arguments; nothing is run."""
    left = list(arguments)
    command: click.Command = main
    context = click.Context(command, info_name="postroad")
    while isinstance(command, click.Group):
        parsed, left, _ = command.make_parser(context).parse_args(left)
        del parsed
        found = command.get_command(context, left[0])
        assert found is not None, f"there is no command {left[0]}"
        command, left = found, left[1:]
        context = click.Context(command, parent=context, info_name=command.name)
    command.make_parser(context).parse_args(left)


# --- Docker


def test_dockerfile_has_nothing_that_hadolint_minds() -> None:
    call(tool("hadolint"), str(DEPLOY / "Dockerfile"))


def started_by_image() -> list[str]:
    (started,) = re.findall(r"^CMD (.*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    return [str(word) for word in json.loads(started)]


def test_image_is_not_roots_is_healthy_and_starts_a_node() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["10001:10001"]
    assert "HEALTHCHECK" in text
    check_command(started_by_image())
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    assert all((ROOT / name).exists() for names in copied for name in names.split())
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == {name for names in copied for name in names.split()}


@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.name)
def test_compose_file_fits_the_schema_and_our_own_commands(file: Path) -> None:
    call(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(file))
    services = yaml.safe_load(file.read_text())["services"]
    ours = {name: service for name, service in services.items() if service["image"].startswith("postroad")}
    assert ours
    for service in ours.values():
        command = service.get("command") or started_by_image()
        settings_in(dict(service.get("environment", {})), command)
        check_command(command)
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), "others could connect"
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]


def test_compose_cluster_has_nodes_that_find_each_other_and_their_etcd() -> None:
    services = yaml.safe_load((DEPLOY / "compose-cluster.yaml").read_text())["services"]
    nodes = {name: each["environment"] for name, each in services.items() if name.startswith("node")}
    assert sorted(each["POSTROAD_NODE_ID"] for each in nodes.values()) == ["1", "2", "3"]
    stores = {each["POSTROAD_CLUSTER_STORE"] for each in nodes.values()}
    store = parse(stores.pop())
    assert not stores
    assert isinstance(store, EtcdAddress)
    assert {host.split(":")[0] for host in store.endpoints} == {n for n in services if n.startswith("etcd")}
    assert all(each["POSTROAD_KAFKA_ADVERTISED_HOST"] == name for name, each in nodes.items())
    command = services["gateway"]["command"]
    asked = read_bootstrap(command[command.index("--bootstrap") + 1]).addresses
    assert {address.host for address in asked} == nodes.keys()
    published = {each["ports"][0].split(":")[1] for name, each in services.items() if name in nodes}
    external = {each["POSTROAD_KAFKA_LISTENERS"].rpartition(":")[2] for each in nodes.values()}
    assert published == external


# --- systemd


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_is_one_for_systemd(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    for each in UNITS:  # a timer needs its service; programs have to be there
        text = each.read_text().replace("/opt/postroad/bin/postroad", "/bin/true")
        (tmp_path / each.name).write_text(text)
    assert call("systemd-analyze", "verify", str(tmp_path / unit.name)) == ""


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.suffix == ".service"], ids=lambda u: u.name)
def test_service_is_hardened_whole_and_calls_what_there_is(unit: Path) -> None:
    if shutil.which("systemd-analyze") is not None:
        call("systemd-analyze", "security", "--offline=yes", "--threshold=20", str(unit))
    text = unit.read_text()
    assert "[Unit]\n" in text
    assert "[Install]\n" in text or unit.with_suffix(".timer").exists()
    (started,) = re.findall(r"^ExecStart=/opt/postroad/bin/postroad (.*)$", text, re.MULTILINE)
    check_command(shlex.split(started))
    settings_in(dict(line.split("=", 1) for line in re.findall(r"^Environment=(.*)$", text, re.MULTILINE)))
    # boot_id is what tells a node that the machine has run on, and it lies in /proc/sys
    assert "ProcSubset" not in text


# --- Helm


def rendered(*values: str) -> list[dict[str, Any]]:
    given = [part for value in values for part in ("--set", value)]
    text = call(tool("helm"), "template", "shop", str(CHART), "--namespace", "prod", *given)
    return [found for found in yaml.safe_load_all(text) if found]


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in found if each["kind"] == kind]


def pods(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in found:
        if each["kind"] in ("StatefulSet", "Deployment"):
            yield each["spec"]["template"]["spec"]
        if each["kind"] == "CronJob":
            yield each["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


@pytest.mark.parametrize("values", [OPEN, SECURED, ("replicas=1", "topicReplicas=1", "insecure=true")])
def test_chart_renders_to_objects_that_kubernetes_takes(values: Sequence[str], tmp_path: Path) -> None:
    given = [part for value in values for part in ("--set", value)]
    call(tool("helm"), "lint", "--strict", str(CHART), *given)
    file = tmp_path / "rendered.yaml"
    file.write_text(yaml.safe_dump_all(rendered(*values)))
    assert "WARN" not in call(tool("kubernetes-validate"), "--strict", str(file))


@pytest.mark.parametrize("values", [OPEN, SECURED])
def test_pods_of_the_chart_are_bounded_probed_and_have_no_privileges(values: Sequence[str]) -> None:
    found = rendered(*values)
    assert len(of_kind(found, "PodDisruptionBudget")) == 2
    for pod in pods(found):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False, "POSTROAD_PORT and the like are no settings of ours"
        mounts = set()
        for container in containers(pod):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]
            mounts |= {mount["name"] for mount in container["volumeMounts"]}
            if container["name"] not in ("backup", "prune"):
                assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys()
        assert mounts - {"data"} == {volume["name"] for volume in pod["volumes"]}


def test_old_backups_go_after_a_new_one_is_made() -> None:
    (job,) = of_kind(rendered(*OPEN, *BACKED_UP), "CronJob")
    (pod,) = pods([job])
    assert [container["args"][1] for container in pod["initContainers"]] == ["create"]
    (pruning,) = pod["containers"]
    assert pruning["args"][1:] == [
        "prune",
        "s3://backups/here",
        "--yes",
        "--keep-days=14",
        "--keep-monthly=12",
    ]


def test_nodes_of_the_chart_stand_apart_and_have_a_disk_each() -> None:
    (nodes,) = of_kind(rendered(*OPEN), "StatefulSet")
    spec = nodes["spec"]["template"]["spec"]
    (rule,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = nodes["spec"]["template"]["metadata"]["labels"]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["labelSelector"]["matchLabels"].items() <= labels.items()
    assert [claim["metadata"]["name"] for claim in nodes["spec"]["volumeClaimTemplates"]] == ["data"]
    assert spec["terminationGracePeriodSeconds"] > 90


@pytest.mark.parametrize("values", [OPEN, SECURED])
def test_environment_and_commands_of_the_chart_are_ours(values: Sequence[str], tmp_path: Path) -> None:
    for container in (each for pod in pods(rendered(*values)) for each in containers(pod)):
        environment = {each["name"]: each.get("value", "") for each in container["env"]}
        addressed = environment.get("POSTROAD_BOOTSTRAP", "").replace("/etc/postroad/tls/ca.crt", "ca.pem")
        if addressed:
            (tmp_path / "ca.pem").touch()
            hosts = [address.host for address in read_bootstrap(addressed).addresses]
            assert hosts == [f"shop-{n}.shop-nodes.prod.svc.cluster.local" for n in range(3)]
        if "POSTROAD_CLUSTER_STORE" in environment:
            assert isinstance(parse(environment["POSTROAD_CLUSTER_STORE"]), EtcdAddress)
        settings_in({name: value for name, value in environment.items() if name.startswith("POSTROAD_")})
        check_command(container.get("args") or started_by(container["command"]))


def started_by(command: list[str]) -> list[str]:
    """What a shell would give to `postroad`; it must be able to read the line, and number the node."""
    assert command[:2] == ["sh", "-c"]
    echo = command[2].replace("exec postroad", 'echo "$POSTROAD_NODE_ID" "$POSTROAD_KAFKA_ADVERTISED_HOST"')
    done = subprocess.run(
        ["sh", "-c", echo],
        env={"POD_NAME": "shop-2", "POD_DOMAIN": "nodes.svc"},
        capture_output=True,
        text=True,
        timeout=10,
    )
    number, host, *arguments = done.stdout.split()
    assert (number, host) == ("3", "shop-2.nodes.svc")
    return arguments


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((), "several nodes need an etcd"),
        (("etcd.endpoints={e:1}",), "set security.enabled, or insecure=true"),
        (("etcd.endpoints={e:1}", "security.enabled=true"), "needs tls.secret and security.masterKeySecret"),
        ((*OPEN, "replicas=2"), "topicReplicas can't be more than replicas"),
        ((*OPEN, "replica=2"), "replica"),
        ((*OPEN, "etcd.endpoints={http://e:1}"), "etcd.endpoints"),
        ((*OPEN, "settings.KAFKA_HEAP=1"), "settings"),
        ((*OPEN, "backup.keep={--yes}"), "backup"),
    ],
)
def test_values_that_do_not_go_together_are_refused(values: Sequence[str], said: str) -> None:
    given = [part for value in values for part in ("--set", value)]
    assert said in call(tool("helm"), "template", "shop", str(CHART), *given, code=1)


def test_a_node_takes_the_version_of_chart_and_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    said = CliRunner().invoke(main, ["--version"]).output
    assert chart["appVersion"] in said
