"""An action as commands for a terminal: curl for its endpoint, and `postroad` where that can do the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from postroad.gateway.rest.endpoint import Endpoint

Path = Mapping[str, str]


class Command(NamedTuple):
    """`cli` is empty where the command line has no such command."""

    curl: str
    cli: str = ""


def command_of(origin: str, endpoint: Endpoint, path: Path, query: Mapping[str, Any], body: Any) -> Command:
    url = origin + endpoint.path.format(**{name: quote(value, safe="") for name, value in path.items()})
    if query:
        url += "?" + urlencode({name: str(value) for name, value in query.items()})
    words = ["curl"]
    if endpoint.method != ("GET" if body is None else "POST"):
        words += ["-X", endpoint.method]
    if body is not None:
        words += ["--json", json.dumps(body, ensure_ascii=False)]
    known = CLI.get(endpoint.name)
    arguments = known(path, body or {}) if known is not None else None
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
}
