"""`postroad pipeline run` and `postroad pipeline status`"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from postroad.cli import output
from postroad.cli.command import Command, FilePath
from postroad.cli.pipeline import errors_told, spark_options, spark_session, stopping
from postroad.cli.session import Failed, address_to_hand_on, bootstrap_option, json_option

if TYPE_CHECKING:
    from postroad.pipelines.declared.declaration import Pipeline
    from postroad.pipelines.declared.status import Status

FILE: Final = FilePath(path_type=Path, dir_okay=False)
DEFAULT: Final = "pipeline.toml"
ERROR_CHARACTERS: Final = 60
BAD_STATES: Final = ("failed", "waiting", "silent")


@click.command(cls=Command)
@click.argument("file", type=FILE, default=DEFAULT)
@bootstrap_option
@click.option("--once", is_flag=True, help="Do what there is now, step after step, then end.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus there, under /metrics.")
@spark_options
@json_option
def run(
    file: Path,
    bootstrap: str,
    once: bool,
    metrics: str | None,
    master: str | None,
    confs: Sequence[str],
    as_json: bool,
) -> None:
    """Run the pipeline that FILE declares: archives, tables that SQL makes of them, and topics.

    Each step has a checkpoint of its own, and each of its rows is written once, whatever is killed. A step
    that fails is tried again, after longer and longer pauses of a minute at most; the others go on.
    `postroad pipeline status` shows how they are, from any other shell.

    \b
    [archive.orders]
    topics = ["orders"]
    to = "lake/orders"
    json-schema = "id bigint, customer string, total double"
    \b
    [table.paid]
    sql = "select id, customer, total from orders where total > 0"
    to = "lake/paid"
    \b
    [topic.large-orders]
    sql = "select customer as key, to_json(struct(id, total)) as value from paid where total >= 100"
    """
    with errors_told():
        pipeline = _declared(file)
    address = address_to_hand_on(_address(pipeline, bootstrap))
    with spark_session("run", master, confs, address) as spark, stopping() as stop:
        from postroad.pipelines.declared.run import run as run_all

        tell = _tell_json if as_json else _tell
        found = run_all(
            spark, pipeline, address, once=once, stop=stop, tell=tell, serving=_serving(pipeline, metrics)
        )
    if not as_json:
        _show(found)


@click.command(cls=Command)
@click.argument("file", type=FILE, default=DEFAULT)
@json_option
def status(file: Path, as_json: bool) -> None:
    """Show how each step of the pipeline that FILE declares is doing, wherever it runs on this machine.

    Rows and bytes are of all runs, the rates are over the last minute; bytes are about what the rows take
    without compression. Behind are messages, or batches of a table, that
    wait; lag is for how long there have been any, or for how long the step has not been running. The exit
    code is 1 if a step has failed, is waiting to be tried again, or is silent: its program seems to be dead.
    """
    with errors_told():
        from postroad.pipelines.declared.status import read_status

        found = read_status(_declared(file))
    if as_json:
        output.write_json([asdict(each) for each in found])
    else:
        _show(found)
    if bad := [each.step for each in found if each.state in BAD_STATES]:
        raise Failed(f"look after: {', '.join(bad)}")


def _declared(file: Path) -> Pipeline:
    from postroad.pipelines.declared.declaration import read

    return read(file)


def _address(pipeline: Pipeline, bootstrap: str) -> str:
    """The file's, unless the command says another."""
    source = click.get_current_context().get_parameter_source("bootstrap")
    if pipeline.bootstrap is not None and source in (None, ParameterSource.DEFAULT):
        return pipeline.bootstrap
    return bootstrap


def _serving(
    pipeline: Pipeline, metrics: str | None
) -> Callable[[Callable[[], list[Status]]], AbstractContextManager[object]] | None:
    if metrics is None:
        return None
    from postroad.client.metadata import parse_bootstrap
    from postroad.pipelines.declared.serving import served
    from postroad.pipelines.declared.status import page

    host, port = parse_bootstrap(metrics)[0]
    return lambda now: served(host, port, lambda: page(pipeline.name, now()))


def _tell(status: Status) -> None:
    why = f": {status.error}" if status.state in BAD_STATES and status.error else ""
    click.echo(f"{time.strftime('%H:%M:%S')} {status.step} {status.state}{why}", err=True)


def _tell_json(status: Status) -> None:
    import msgspec

    click.echo(msgspec.json.encode(asdict(status)).decode())


def _show(found: list[Status]) -> None:
    columns = (
        "step",
        "kind",
        "state",
        "rows",
        "rows/s",
        "bytes",
        "bytes/s",
        "behind",
        "lag s",
        "restarts",
        "last error",
    )
    rows = [
        (
            each.step,
            each.kind,
            each.state,
            each.rows,
            each.rate,
            each.bytes,
            round(each.byte_rate),
            each.behind,
            round(each.lag_s),
            each.restarts,
            each.error if each.error is None else each.error[:ERROR_CHARACTERS],
        )
        for each in found
    ]
    output.table(columns, rows)
