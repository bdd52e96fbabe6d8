"""`postroad mirror`"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from postroad.cli.command import Command
from postroad.cli.duration import DurationType
from postroad.cli.profile import choose, current
from postroad.cli.session import Failed, address_of, cluster_options, explain, json_option
from postroad.errors import ConfigurationError, PostroadError

FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command(cls=Command)
@click.option("--to", "target", metavar="HOST:PORT[,…]", help="The cluster that gets a copy.")
@click.option("--to-profile", type=FILE, help="Where that is and who you are there, as in a --profile.")
@click.option("--to-user", metavar="NAME", help="Log in there as this user.")
@click.option("--to-password-file", type=FILE, help="That user's password, in the first line.")
@click.option("--to-master-key", type=FILE, help="Log in there with that cluster's master key instead.")
@click.option("-t", "--topic", "topics", multiple=True, help="What to mirror; may be repeated.")
@click.option("--pattern", metavar="REGEX", help="Mirror all topics whose whole name matches.")
@click.option("--prefix", default="", metavar="TEXT", help="Put this before topics' names at the target.")
@click.option(
    "--topic-config", "configs", multiple=True, metavar="NAME",
    help="Carry over this config of topics, and no others; may be repeated. `none`: none at all.",
)  # fmt: skip
@click.option(
    "-g", "--group", "groups", multiple=True, help="A consumer group to carry over; may be repeated."
)
@click.option("--group-pattern", metavar="REGEX", help="Carry over all groups whose whole name matches.")
@click.option(
    "-s",
    "--subscription",
    "subscriptions",
    multiple=True,
    help="A subscription to carry over; may be repeated.",
)
@click.option(
    "--subscription-pattern", metavar="REGEX", help="Carry over all subscriptions whose whole name matches."
)
@click.option(
    "--acls", "rules", is_flag=True,
    help="Carry over access rules about the topics, groups and subscriptions that are mirrored.",
)  # fmt: skip
@click.option(
    "--acl-user", "rules_of", multiple=True, metavar="NAME",
    help="Of access rules, only those for this user (* for everybody), and denials for everybody; may be "
    "repeated.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Mirror what is there now, positions too, then end.")
@click.option(
    "--every",
    "every_ms",
    type=DurationType(shortest_ms=100),
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="How often to carry positions over and look for new topics. Messages are mirrored at once.",
)
@click.option("--accept-loss", is_flag=True, help="Go on where the source deleted what was not mirrored yet.")
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Of copies, on their way and at the target.",
)
@click.option("--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus there, under /metrics.")
@json_option
@cluster_options
def mirror(
    target: str | None,
    to_profile: Path | None,
    to_user: str | None,
    to_password_file: Path | None,
    to_master_key: Path | None,
    topics: Sequence[str],
    pattern: str | None,
    prefix: str,
    configs: Sequence[str],
    groups: Sequence[str],
    group_pattern: str | None,
    subscriptions: Sequence[str],
    subscription_pattern: str | None,
    rules: bool,
    rules_of: Sequence[str],
    once: bool,
    every_ms: int,
    accept_loss: bool,
    compression: str,
    metrics: str | None,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Copy topics of the cluster at --bootstrap to the one at --to, each message once, as they come.

    Postroad or Apache Kafka, on either side. Partitions, keys, headers and times stay; headers
    postroad-origin-… tell where a message comes from. A message never comes back to a cluster where it has
    been: start another mirror in the other direction, if you like.

    Groups and subscriptions come along: at the target they go on where they are at the source. Whoever has
    members at the target is left alone. Kill it as you like and start it again, anywhere: it goes on where
    it was.

    Who you are at the source say --profile, --user or --master-key, before the command.

    \b
    postroad mirror -b dc1:9092 --to dc2:9092 --pattern 'orders|paid-.*' --group-pattern '.*'
    postroad mirror -b dc1:9092 --to dc2:9092 --topic orders --group billing --once
    postroad mirror -b dc1:9092 --to dc2:9092 --pattern '.*' --prefix dc1. --metrics 127.0.0.1:9464
    postroad --profile dc1.toml mirror --to-profile dc2.toml --pattern '.*' --group-pattern '.*' --acls
    """
    from postroad.client.bootstrap import read
    from postroad.client.metadata import parse_bootstrap
    from postroad.mirrors.mirror import MirrorSettings
    from postroad.mirrors.positions import Wanted
    from postroad.mirrors.serve import run

    here, there = current(), choose(to_profile, to_user, to_password_file, to_master_key, prefix="--to-")
    if not (target or there.bootstrap):
        raise click.UsageError("say where the copy goes: --to, or a --to-profile that names it")
    if rules_of and not rules:
        raise click.UsageError("--acl-user chooses among access rules: say --acls, too")
    target = there.bootstrap_for(target or "")
    settings = MirrorSettings(
        address_of(bootstrap, here),
        target,
        topics,
        pattern=pattern,
        prefix=prefix,
        configs=[name for name in configs if name != "none"] if configs else None,
        groups=Wanted(groups, group_pattern),
        subscriptions=Wanted(subscriptions, subscription_pattern),
        rules=rules,
        rules_of=rules_of,
        once=once,
        every_s=every_ms / 1000,
        accepts_loss=accept_loss,
        compression=compression,
    )
    try:
        for address in (settings.source, target):
            read(address)
        page_at = None if metrics is None else parse_bootstrap(metrics)[0]
        done = run(settings, (here.credentials, there.credentials), page_at, timeout_s)
    except ConfigurationError as error:
        raise click.UsageError(str(error)) from None
    except PostroadError as error:
        raise Failed(explain(error)) from None
    _say(done, target, as_json)
    if once and not done["is_complete"]:
        raise Failed("it was stopped: run it again, and it goes on where it was")
    refused = [
        name for kind in ("groups", "subscriptions") for name, each in done[kind].items() if each["refused"]
    ]
    if once and refused:
        raise Failed(f"positions were not carried over: {', '.join(refused)}")
    if once and rules and (why := done["access_rules"]["refused"]):
        raise Failed(f"access rules were not carried over: {why}")


def _say(done: dict[str, Any], target: str, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(done))
        return
    copied = sum(topic["copied"] for topic in done["topics"].values())
    click.echo(f"mirrored {copied} messages of {len(done['topics'])} topics to {target}")
    for kind in ("group", "subscription"):
        for name, carried in sorted(done[f"{kind}s"].items()):
            click.echo(f"{kind} {name}: {carried_text(carried)}")
    if rules := done["access_rules"]:
        click.echo(f"access rules: {rules['added']} added at the target, {rules['removed']} removed")


def carried_text(carried: Mapping[str, Any]) -> str:
    """What became of a group or a subscription."""
    if carried["refused"]:
        return f"can't be carried over: {carried['refused']}"
    if carried["is_active_there"]:
        return "has members at the target, and is left alone"
    if carried["again"]:
        return f"goes on at the target; up to {carried['again']} messages come again"
    return "goes on at the target with the first message that it has not read"
