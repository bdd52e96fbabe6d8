"""Mirrors between clusters that speak TLS and ask who comes: their logins, and which rights they need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from postroad.cli import main
from postroad.client import TopicPartition, groups, subscriptions
from postroad.client.append import append
from postroad.mirrors.errors import MirrorError
from postroad.mirrors.positions import Carried, Wanted
from postroad.security.resources import Operation
from postroad.wire.records import Record, encode_batch
from tests.broker.secured import PASSWORD, Secured, secured_node
from tests.certificates import Authority

from .runs import copied
from .secured import READ, WRITE, connected, create, give, mirror_once, rule, take

# What docs/data-centres.md says that a mirror needs.
AT_SOURCE = (
    ("topic postroad-mirrors", (READ,)),
    ("topic {0}", (READ, Operation.DESCRIBE_CONFIGS)),
    ("group {0}", (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)),
)
AT_TARGET = (
    ("topic {0}", (READ, WRITE, Operation.CREATE, Operation.ALTER, Operation.ALTER_CONFIGS)),
    ("topic postroad-mirrors", (READ, WRITE, Operation.CREATE)),
    ("group {0}", (READ, Operation.ALTER_CONFIGS)),
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    authority.issue("node")
    return authority.directory


@pytest.fixture(scope="module")
def west(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("west")) as running:
        yield running


@pytest.fixture(scope="module")
def east(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("east")) as running:
        yield running


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[Secured]:
    settings = {
        "kafka_tls": "true",
        "tls_certificate": certificates / "node.pem",
        "tls_key": certificates / "node.key",
        "tls_ca": certificates / "ca.pem",
    }
    with secured_node(tmp_path_factory.mktemp("encrypted"), **settings) as running:
        yield running


def invoke(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


def profile(directory: Path, bootstrap: str, password: str = PASSWORD, **more: str) -> str:
    path = directory / f"profile-{len(list(directory.iterdir()))}.toml"
    lines = {"bootstrap": bootstrap, "user": "admin", "password": password, **more}
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items()))
    path.chmod(0o600)  # else each command warns that others can read the password
    return str(path)


def test_topics_and_rules_are_mirrored_over_tls_with_a_login_at_each_side(
    west: Secured, encrypted: Secured, certificates: Path, tmp_path: Path, topic: str
) -> None:
    here = profile(tmp_path, west.bootstrap)
    there = profile(tmp_path, f"tls://{encrypted.bootstrap}", ca=str(certificates / "ca.pem"))
    invoke("--profile", here, "topic", "create", topic)
    invoke("--profile", here, "publish", topic, "one", "two")
    invoke("--profile", here, "acl", "allow", "shop", "--consume", topic, "--group", topic)
    mirror = ["mirror", "--topic", topic, "--group", topic, "--acls", "--once"]
    done = invoke("--profile", here, *mirror, "--to-profile", there)
    assert "mirrored 2 messages of 1 topics" in done.output
    assert "access rules: 2 added at the target, 0 removed" in done.output
    assert invoke("--profile", there, "consume", topic, "--count", "2").output.split() == ["one", "two"]
    listed = json.loads(invoke("--profile", there, "acl", "list", "--json").stdout)
    assert {each["resource"] for each in listed} == {f"topic {topic}", f"group {topic}"}
    back = invoke("--profile", there, *mirror, "--to-profile", here, "--json")
    assert json.loads(back.stdout)["access_rules"] == {"added": 0, "removed": 0, "brought": 0, "refused": ""}


def test_wrong_logins_and_options_say_what_to_do(
    west: Secured, east: Secured, tmp_path: Path, topic: str
) -> None:
    good, bad = profile(tmp_path, west.bootstrap), profile(tmp_path, east.bootstrap, password="no")
    once = ["mirror", "--topic", topic, "--once"]
    refused = invoke("--profile", good, *once, "--to-profile", bad, code=1)
    assert "The user or the password is wrong" in refused.output
    refused = invoke("--profile", good, *once, "--to", east.bootstrap, "--timeout", "2", code=1)
    assert east.bootstrap in refused.output
    assert "say where the copy goes" in invoke(*once, code=2).output
    assert "--to-password-file" in invoke(*once, "--to", "a:1", "--to-user", "shop", code=2).output
    assert "say --acls" in invoke(*once, "--to", "a:1", "--acl-user", "shop", code=2).output
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("=")
    assert "--to-profile" in invoke(*once, "--to-profile", str(wrong), code=2).output


async def test_a_mirror_needs_the_rights_that_are_documented_and_no_more(
    west: Secured, east: Secured, topic: str
) -> None:
    group, queue = f"{topic}-g", f"{topic}-q"
    await create(west, [topic])
    async with connected(west) as client:
        await append(client, TopicPartition(topic, 0), encode_batch([Record(0, 0, None, b"one")]))
        await groups.commit(client, group, {TopicPartition(topic, 0): 1})
        await subscriptions.alter_config(client, queue, {"postroad.topics": topic})
    for node, needed in ((west, AT_SOURCE), (east, AT_TARGET)):
        node.add_user("mirror")
        for resource, operations in needed:
            pattern = resource.format(f"{topic}*")
            await give(node, *(rule(pattern, each, "User:mirror") for each in operations))
    done = await mirror_once(
        west,
        east,
        topic,
        user="mirror",
        rules=False,
        groups=Wanted((group,)),
        subscriptions=Wanted((queue,)),
    )
    assert copied(done) == 1
    assert done.carriage.groups == {group: Carried(moved=1)}
    assert done.carriage.subscriptions == {queue: Carried(moved=1)}
    with pytest.raises(MirrorError, match="the access rules of the source can't be read: Not authorized"):
        await mirror_once(west, east, topic, user="mirror")
    for each in (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS):
        await give(west, rule("cluster kafka-cluster", each, "User:mirror"))
    for each in (Operation.ALTER, Operation.DESCRIBE_CONFIGS):  # Alter implies Describe
        await give(east, rule("cluster kafka-cluster", each, "User:mirror"))
    done = await mirror_once(west, east, topic, user="mirror")
    assert done.carriage.rules.refused == ""
    assert done.carriage.rules.brought > 0


@pytest.mark.parametrize(
    ("missing", "complaint"),
    [
        ("source", "source: Not authorized for this topic: {0} may not be read"),
        ("target", "{0}/0 at the target: Not authorized"),
    ],
)
async def test_a_topic_that_the_mirror_may_not_read_or_write_is_named(
    west: Secured, east: Secured, topic: str, missing: str, complaint: str
) -> None:
    await create(west, [topic])
    async with connected(west) as client:
        await append(client, TopicPartition(topic, 0), encode_batch([Record(0, 0, None, b"one")]))
    needed = {
        "source": (west, READ, [READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS]),
        "target": (east, WRITE, [READ, WRITE, Operation.CREATE, Operation.ALTER_CONFIGS]),
    }
    for side, (node, without, operations) in needed.items():
        node.add_user(topic)
        for name in (topic, "postroad-mirrors"):
            await give(node, *(rule(f"topic {name}", each, f"User:{topic}") for each in operations))
        if side == missing:
            await take(node, rule(f"topic {topic}", without, f"User:{topic}"))
    with pytest.raises(MirrorError, match=complaint.format(topic)):
        await mirror_once(west, east, topic, user=topic, rules=False)
