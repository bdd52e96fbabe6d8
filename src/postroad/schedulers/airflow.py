"""Operators and sensors for Airflow 3: `pip install 'postroad[airflow]'`.

    MessagesSensor(task_id="orders", group="reports", topics=["orders"], mode="reschedule")
    PipelineOperator(task_id="archive", arguments=["archive", "-t", "orders", "--to", "s3://lake/orders"])
    CaughtUpSensor(task_id="billed", group="billing")
    PublishOperator(task_id="tell", topic="reports", value={"day": "{{ ds }}"})

All take `conn_id`, the id of a connection of Airflow's: host and port (or several addresses as host), login,
password, and in its extra `tls`, `ca` and `profile`. Without one the variables of the worker count, as for
every client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseHook, BaseOperator, BaseSensorOperator

from postroad.schedulers.access import Access
from postroad.schedulers.command import Command
from postroad.schedulers.waiting import messages_waiting

PORT = 9092


class PostroadHook(BaseHook):
    """`PostroadHook("postroad").client()` is a `postroad.SyncClient` for tasks of your own."""

    def __init__(self, conn_id: str | None = None) -> None:
        super().__init__()
        self._conn_id = conn_id

    def access(self) -> Access:
        if self._conn_id is None:
            return Access()
        found = self.get_connection(self._conn_id)
        extra = found.extra_dejson
        return Access(
            _address(found, extra), found.login or "", found.password or "", extra.get("profile") or ""
        )

    def client(self) -> Any:
        return self.access().client()


def _address(connection: Any, extra: Mapping[str, Any]) -> str:
    host = connection.host or ""
    if not host:
        return ""
    if "," not in host and not host.rpartition(":")[2].isdigit():
        host = f"{host}:{connection.port or PORT}"
    if not (extra.get("tls") or extra.get("ca")):
        return host
    return f"tls://{host}" + (f"?ca={quote(extra['ca'])}" if extra.get("ca") else "")


class _Sensor(BaseSensorOperator):
    template_fields: Sequence[str] = ("group", "topics")

    def __init__(
        self, *, group: str, topics: Sequence[str] = (), conn_id: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.group = group
        self.topics = topics
        self.conn_id = conn_id

    def waiting(self) -> int:
        found = messages_waiting(PostroadHook(self.conn_id).access(), self.group, self.topics)
        self.log.info("%d messages wait for %s", found, self.group)
        return found


class MessagesSensor(_Sensor):
    """Waits until `at_least` messages wait for a consumer group or a subscription.

    It takes none of them: the tasks behind it do. With `topics` messages count that are there before the
    group's first consumer is.
    """

    def __init__(self, *, at_least: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.at_least = at_least

    def poke(self, context: Any) -> bool:
        return self.waiting() >= self.at_least


class CaughtUpSensor(_Sensor):
    """Waits until at most `at_most` messages wait for a consumer group or a subscription."""

    def __init__(self, *, at_most: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.at_most = at_most

    def poke(self, context: Any) -> bool:
        return self.waiting() <= self.at_most


class PublishOperator(BaseOperator):
    """Publishes `value`: text, bytes, or what JSON can say.

    The message's id is that of the task in its run, so one that is tried again is delivered once by a
    subscription with `postroad.deduplicate.ms`.
    """

    template_fields: Sequence[str] = ("topic", "value", "key", "headers")

    def __init__(
        self,
        *,
        topic: str,
        value: Any,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.topic = topic
        self.value = value
        self.key = key
        self.headers = headers
        self.conn_id = conn_id

    def execute(self, context: Any) -> None:
        task = context["ti"]
        name = f"{task.dag_id}/{task.run_id}/{task.task_id}/{task.map_index}"
        with PostroadHook(self.conn_id).client() as client:
            client.publish(self.topic, self.value, key=self.key, headers=self.headers, id=name)


class PipelineOperator(BaseOperator):
    """Runs `postroad pipeline` with these arguments, and returns what it says at its end.

    `program` is the command of an installation with Spark (`/opt/postroad/bin/postroad`), where the worker's
    own has none. A task that is killed stops its pipeline.
    """

    template_fields: Sequence[str] = ("arguments",)

    def __init__(
        self,
        *,
        arguments: Sequence[str],
        program: str | Sequence[str] | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.arguments = arguments
        self.program = program
        self.conn_id = conn_id
        self._command: Command | None = None

    def execute(self, context: Any) -> Any:
        words = ["pipeline", *self.arguments, "--json"]
        self._command = Command(words, PostroadHook(self.conn_id).access(), self.program)
        return self._command.run(self.log.info)

    def on_kill(self) -> None:
        if self._command is not None:
            self._command.stop()
