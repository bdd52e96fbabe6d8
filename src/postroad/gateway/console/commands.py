"""An action as commands for a terminal: curl for its endpoint, and `postroad` where that can do the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from postroad.gateway.rest.endpoint import Endpoint

Path = Mapping[str, str]


class Command(NamedTuple):
    """`cli` is empty where the command line has no such command."""

    curl: str
    cli: str = ""


def command_of(
    origin: str, endpoint: Endpoint, path: Path, query: Mapping[str, Any], body: Any, user: str = ""
) -> Command:
    """`user`: in whose name; curl asks for the password."""
    url = origin + endpoint.path.format(**{name: quote(value, safe="") for name, value in path.items()})
    if query:
        url += "?" + urlencode({name: str(value) for name, value in query.items()})
    words = ["curl", "-u", user] if user else ["curl"]
    if endpoint.method != ("GET" if body is None else "POST"):
        words += ["-X", endpoint.method]
    if body is not None:
        words += ["--json", json.dumps(body, ensure_ascii=False)]
    known = CLI.get(endpoint.name)
    arguments = known(path, body or dict(query)) if known is not None else None
    cli = "" if arguments is None else shlex.join(["postroad", *arguments])
    return Command(shlex.join([*words, url]), cli)


def _create_topic(path: Path, body: Any) -> list[str] | None:
    words = ["topic", "create", body["name"]]
    if body.get("partitions") is not None:
        words += ["--partitions", str(body["partitions"])]
    for name, value in (body.get("configs") or {}).items():
        words += ["--config", f"{name}={value}"]
    return words


def _alter_topic(path: Path, body: Any) -> list[str] | None:
    words = ["topic", "alter", path["topic"]]
    if body.get("partitions") is not None:
        words += ["--partitions", str(body["partitions"])]
    for name, value in (body.get("configs") or {}).items():
        words += ["--reset", name] if value is None else ["--config", f"{name}={value}"]
    return words


def _publish(path: Path, body: Any) -> list[str] | None:
    message = body[0] if isinstance(body, list) and len(body) == 1 else body
    if not isinstance(message, Mapping) or not isinstance(message.get("value"), str):
        return None
    if any(message.get(name) is not None for name in ("partition", "timestamp_ms", "delay_ms", "headers")):
        return None
    words = ["publish", path["topic"]]
    if isinstance(message.get("key"), str):
        words += ["--key", message["key"]]
    return [*words, "--", message["value"]]


def _delete_topic(path: Path, body: Any) -> list[str] | None:
    return ["topic", "delete", path["topic"]]


def _delete_subscription(path: Path, body: Any) -> list[str] | None:
    return ["subscription", "delete", path["subscription"]]


def _purge(path: Path, body: Any) -> list[str] | None:
    return None if body else ["subscription", "purge", path["subscription"]]


def _reset_group(path: Path, body: Any) -> list[str] | None:
    words = ["group", "reset", path["group"]]
    if body.get("to") is not None:
        words += ["--to", "beginning" if body["to"] == "earliest" else "end"]
    elif body.get("offset") is not None:
        words += ["--to", str(body["offset"])]
    else:
        return None
    if len(body.get("partitions") or []) > 1:
        return None
    for topic, partition in body.get("partitions") or []:
        words += ["--topic", topic, "--partition", str(partition)]
    return words


def _delete_group(path: Path, body: Any) -> list[str] | None:
    return ["group", "delete", path["group"]]


def _drain_node(path: Path, body: Any) -> list[str] | None:
    return ["cluster", "drain", path["node"]]


def _cancel_drain(path: Path, body: Any) -> list[str] | None:
    return ["cluster", "drain", path["node"], "--cancel"]


def _create_user(path: Path, body: Any) -> list[str] | None:
    return ["user", "create", body["name"]]


def _change_password(path: Path, body: Any) -> list[str] | None:
    return ["user", "password", path["user"]]


def _delete_user(path: Path, body: Any) -> list[str] | None:
    return ["user", "delete", path["user"]]


def _create_key(path: Path, body: Any) -> list[str] | None:
    return ["user", "key", "create", path["user"]]


def _disable_key(path: Path, body: Any) -> list[str] | None:
    return ["user", "key", "disable", path["key"]]


def _enable_key(path: Path, body: Any) -> list[str] | None:
    return ["user", "key", "enable", path["key"]]


def _delete_key(path: Path, body: Any) -> list[str] | None:
    return ["user", "key", "delete", path["key"]]


def _create_acls(path: Path, body: Any) -> list[str] | None:
    """One command, where all rules differ only by what they are about."""
    acls = body["acls"]
    if len({(each["operation"], each["type"] in _NAMED, each.get("host")) for each in acls}) != 1:
        return None
    about = [_about(each) for each in acls]
    if None in about or (len(acls) > 1 and acls[0]["type"] not in _NAMED):
        return None
    named = [word for words in about for word in words or ()]
    return ["acl", acls[0]["permission"], _of_user(acls[0]), *named, *_how(acls[0])]


def _delete_acl(path: Path, body: Any) -> list[str] | None:
    """The command takes back what was denied as well as what was allowed."""
    about = _about(body)
    return None if about is None else ["acl", "remove", _of_user(body), *about, *_how(body)]


_NAMED: Final = ("topic", "group")  # whose operations the command line is told


def _of_user(acl: Mapping[str, str]) -> str:
    return acl["principal"].removeprefix("User:")


def _about(acl: Mapping[str, str]) -> list[str] | None:
    """None: the command line can't say it."""
    prefixed = acl.get("pattern") == "prefixed"
    name = acl["name"] + ("*" if prefixed else "")
    if acl["type"] == "cluster":
        return ["--cluster", acl["operation"]]
    if not prefixed and name.endswith("*") and name != "*":
        return None  # it would be taken for a prefix
    if acl["type"] in _NAMED or acl["operation"] == "write":
        return [f"--{acl['type']}", name]
    return None


def _how(acl: Mapping[str, str]) -> list[str]:
    words = ["--operation", acl["operation"]] if acl["type"] in _NAMED else []
    return words if acl.get("host", "*") == "*" else [*words, "--from", acl["host"]]


def _redrive(path: Path, body: Any) -> list[str] | None:
    if body.keys() & {"letters", "edit", "discard", "headers"}:
        return None
    words = ["redrive", path["subscription"]]
    for reason in body.get("reasons", []):
        words += ["--reason", reason]
    if body.get("died_since_ms"):
        since = datetime.fromtimestamp(body["died_since_ms"] / 1000, UTC)
        words += ["--since", since.isoformat().replace("+00:00", "Z")]
    for name, option in (
        ("key_matches", "--key-matches"),
        ("to", "--to"),
        ("rate", "--rate"),
        ("limit", "-n"),
    ):
        words += [option, str(body[name])] if body.get(name) is not None else []
    return [*words, "--dry-run"] if body.get("dry_run") else words


CLI: Final[Mapping[str, Callable[[Path, Any], list[str] | None]]] = {
    "create_topic": _create_topic,
    "alter_topic": _alter_topic,
    "delete_topic": _delete_topic,
    "publish": _publish,
    "delete_subscription": _delete_subscription,
    "purge": _purge,
    "reset_group": _reset_group,
    "delete_group": _delete_group,
    "drain_node": _drain_node,
    "cancel_drain": _cancel_drain,
    "redrive": _redrive,
    "create_user": _create_user,
    "change_password": _change_password,
    "delete_user": _delete_user,
    "create_key": _create_key,
    "disable_key": _disable_key,
    "enable_key": _enable_key,
    "delete_key": _delete_key,
    "create_acls": _create_acls,
    "delete_acl": _delete_acl,
}
