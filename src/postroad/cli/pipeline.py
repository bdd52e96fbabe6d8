"""`postroad pipeline …`: the list of pipelines, and what their commands share.

A pipeline's command lives in `pipeline_NAME.py` and is named below. It imports `postroad.pipelines`
inside its function, so that Spark is loaded only when it runs.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import click

from postroad.cli import output
from postroad.cli.root import Commands
from postroad.cli.session import Failed, explain
from postroad.errors import PostroadError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroad.pipelines.running import Progress

F = TypeVar("F", bound=Callable[..., Any])

PIPELINES: Final = {
    "archive": "pipeline_archive:archive",
    "merge": "pipeline_merge:merge",
    "run": "pipeline_run:run",
    "status": "pipeline_run:status",
    "replay": "pipeline_replay:replay",
    "redrive": "pipeline_redrive:redrive",
    "mirror": "pipeline_mirror:mirror",
    "report": "pipeline_report:report",
}


@click.group(cls=Commands, table=PIPELINES)
def pipeline() -> None:
    """Jobs on Spark: archive topics, and work with what was archived."""


def spark_options(command: F) -> F:
    """--master and --conf: `master` and `confs` of the command's function, for `spark_session`."""
    command = click.option(
        "--conf",
        "confs",
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting of Spark, such as spark.driver.memory=4g.",
    )(command)
    return click.option(
        "--master",
        metavar="URL",
        help="The Spark cluster: spark://HOST:PORT, yarn, k8s://…, sc://… (Connect); otherwise this machine.",
    )(command)


def catalog_option(command: F) -> F:
    """--catalog: where an Iceberg table is known."""
    return click.option(
        "--catalog",
        default="",
        metavar="URL|NAME",
        callback=_without_password,
        help="Iceberg: the table's catalogue; its own by default.",
    )(command)


def _without_password(context: click.Context, option: click.Parameter, value: str) -> str:
    """Everybody on the machine sees the words of a command."""
    from urllib.parse import urlsplit

    try:
        password = urlsplit(value).password
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if password:
        raise click.BadParameter(
            "a password here would be seen in the list of processes: name a catalogue of pyiceberg's "
            "settings, and let the URL stand there"
        )
    return value


def iceberg_options(command: F) -> F:
    """--catalog and --table: where an Iceberg archive is known, and as what."""
    command = click.option(
        "--table",
        default="postroad.archive",
        show_default=True,
        metavar="NAMESPACE.NAME",
        help="Iceberg: the archive's name in its catalogue.",
    )(command)
    return catalog_option(command)


def values_options(command: F) -> F:
    """--values and --schema-registry: how values are read that have a schema."""
    command = click.option(
        "--schema-registry", metavar="URL", help="Where the schemas are: http://HOST:PORT, such as a gateway."
    )(command)
    return click.option(
        "--values",
        type=click.Choice(["avro", "json-schema", "protobuf"]),
        help="Values begin with the id of such a schema, and their fields become columns.",
    )(command)


def of_values(values: str | None, schema_registry: str | None) -> dict[str, str]:
    """The same as options of the source."""
    if (values is None) != (schema_registry is None):
        raise click.UsageError("--values and --schema-registry belong together: give both")
    return {} if values is None else {"valueFormat": values, "schemaRegistry": schema_registry or ""}


@contextmanager
def spark_session(
    name: str,
    master: str | None,
    confs: Sequence[str],
    *clusters: str | None,
    is_short: bool = False,
) -> Iterator[SparkSession]:
    """A session for a command; errors of the block, and of Spark in it, become one line and exit code 1.

    Before Spark is started, which takes seconds, these clusters have answered.
    """
    from postroad.cli.topic import pairs
    from postroad.pipelines.session import check_packages, session

    config = pairs(confs)
    with errors_told():
        check_packages()
        reach(clusters)
        from postroad.pipelines.failures import spark_failures

        with session(name, master, config, is_short=is_short) as spark, spark_failures():
            yield spark


def reach(clusters: Iterable[str | None]) -> None:
    """An error unless each of them answers and lets us in."""
    from postroad.spark.cluster import Cluster

    for address in clusters:
        if address is not None:
            with Cluster(address) as cluster:
                cluster.id()


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set; a second one ends the program at once."""
    event = threading.Event()
    before: dict[int, Any] = {}

    def stop(number: int, frame: object) -> None:
        signal.signal(number, before[number])
        event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, stop)
    try:
        yield event
    finally:
        for changed, handler in before.items():
            signal.signal(changed, handler)


class Told:
    """Progress for whoever watches: a bar on a terminal, a line of JSON for each micro-batch with --json."""

    def __init__(self, label: str, as_json: bool) -> None:
        self._as_json = as_json
        self._bar = output.growing_progress(label)

    def __enter__(self) -> Self:
        self._advance = self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)

    def report(self, progress: Progress) -> None:
        self._advance(progress.done, progress.total)
        if self._as_json:
            click.echo(json.dumps(progress._asdict()))


@contextmanager
def errors_told() -> Iterator[None]:
    """Errors of ours as a message and exit code 1."""
    try:
        yield
    except PostroadError as error:
        raise Failed(explain(error)) from None
