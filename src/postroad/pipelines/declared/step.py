"""How each kind of step runs: until all is done that was there when it began, or until it is told to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from postroad.pipelines.archive import ArchiveSettings, archive, kinds_of_ddl
from postroad.pipelines.declared.declaration import Pipeline, Step, seconds
from postroad.pipelines.declared.status import StepStatus
from postroad.pipelines.declared.table_sink import NAME as SINK
from postroad.pipelines.declared.table_sink import TableSink, grown, whole_schema
from postroad.pipelines.declared.table_source import NAME as SOURCE
from postroad.pipelines.declared.table_source import TableSource, options_of
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.failures import reason, spark_failures
from postroad.pipelines.merge import BUCKETS, KEEP_S, TIDY_EVERY_S, MergeSettings, merge, merged_table
from postroad.pipelines.row_bytes import BYTES, observed
from postroad.pipelines.running import Moved, follow
from postroad.pipelines.tables import TableAddress, create_table, open_table
from postroad.pipelines.tables.derived import DerivedTable, create_derived, open_derived
from postroad.pipelines.tables.schema import Kind, ddl, with_json
from postroad.pipelines.tables.table import over_conflicts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

log = logging.getLogger(__name__)

OBSERVED: Final = "from"  # and a step's name: the metric of how large the rows are that come from it

# Steps of one session begin one after the other: names of views and of data sources are the session's.
_BEGINNING: Final = threading.Lock()


@dataclass
class Runner:
    """Runs steps of a pipeline in a session. `columns` are those of each table of SQL's, by its step."""

    spark: SparkSession
    pipeline: Pipeline
    bootstrap: str
    once: bool = False
    columns: dict[str, str] = field(default_factory=dict)

    def prepare(self, step: Step) -> None:
        """The step's table is there afterwards, with its columns. PipelineError if it can't be as it is."""
        try:
            if step.kind == "archive":
                create_table(self._address(step))
            elif step.kind == "merge":
                merged_table(self._merge_settings(step))
            elif step.kind == "table":
                self._prepare_table(step)
            elif step.kind == "topic":
                with _BEGINNING:
                    _check_columns(self._frame(step))
        except PipelineError as error:
            raise PipelineError(f"step {step.name}: {error}") from None

    def run(self, step: Step, status: StepStatus, stop: threading.Event) -> None:
        """Until it is done, or `stop` is set. PipelineError if it fails."""
        work: Mapping[str, Callable[[Step, StepStatus, threading.Event], None]] = {
            "archive": self._archive,
            "merge": self._merge,
            "table": self._query,
            "topic": self._query,
        }
        with spark_failures():
            work[step.kind](step, status, stop)

    def _archive(self, step: Step, status: StepStatus, stop: threading.Event) -> None:
        given, address = step.settings, self._address(step)
        settings = ArchiveSettings(
            self.bootstrap,
            given["topics"],
            given["to"],
            format=address.format,  # type: ignore[arg-type]  # it was checked
            once=self.once,
            every_s=self._every_s(step),
            checkpoint=str(self._checkpoint(step)),
            catalog=address.catalog,
            table=address.table,
            json_columns=given.get("json-columns", False) or "json-schema" in given,
            json_kinds=_kinds(step),
            bad_rows=given.get("bad-rows", "keep"),
            dead_letter_topic=given.get("dead-letter-topic", ""),
            optimize=given.get("optimize", False),
            retention_ms=int(seconds(given["retention"]) * 1000) if "retention" in given else None,
            source=_options(step),
        )
        archive(self.spark, settings, report=status.advance, stop=stop)

    def _merge(self, step: Step, status: StepStatus, stop: threading.Event) -> None:
        merge(self.spark, self._merge_settings(step), report=status.advance, stop=stop)

    def _merge_settings(self, step: Step) -> MergeSettings:
        given, address = step.settings, self._address(step)
        return MergeSettings(
            self.bootstrap,
            given["topic"],
            given["to"],
            format=address.format,  # type: ignore[arg-type]  # it was checked
            values=given.get("values", "json"),
            key=given.get("key", ()),
            json_kinds=_kinds(step),
            once=self.once,
            every_s=self._every_s(step),
            buckets=given.get("buckets", BUCKETS),
            bad_rows=given.get("bad-rows", "fail"),
            catalog=address.catalog,
            table=address.table,
        )

    def _query(self, step: Step, status: StepStatus, stop: threading.Event) -> None:
        with _BEGINNING:
            writer = self._writer(step, self._frame(step))
            writer = writer.queryName(step.name).option("checkpointLocation", str(self._checkpoint(step)))
            if self.once:
                query = writer.trigger(availableNow=True).start()
            else:
                query = writer.trigger(processingTime=f"{self._every_s(step):g} seconds").start()

        tidying = _Tidying(open_derived(self._address(step)) if step.kind == "table" else None)
        try:
            follow(query, 0, status.advance, stop, tidying.now_and_then, _moved)
        finally:
            query.stop()
        if self.once:
            tidying.run()

    def _writer(self, step: Step, rows: DataFrame) -> DataStreamWriter:
        if step.kind == "topic":
            _check_columns(rows)
            return (
                rows.writeStream.format("postroad")
                .option("kafka.bootstrap.servers", self.bootstrap)
                .option("topic", step.settings.get("topic", step.name))
                .options(**_options(step))
            )
        writer = rows.writeStream.format(SINK).options(**self._address(step).options())
        return writer.outputMode(step.settings.get("mode", "append"))

    def _prepare_table(self, step: Step) -> None:
        with _BEGINNING:
            found = self._frame(step)
        columns = whole_schema(found.schema)
        table = create_derived(self._address(step), columns, {"made by": "sql"})
        grown(table.load().schema, columns)
        self.columns[step.name] = found.schema.toDDL()

    def _frame(self, step: Step) -> DataFrame:
        """What the SQL gives; each step that it reads is a view meanwhile."""
        from pyspark.errors import AnalysisException, ParseException

        self.spark.createDataFrame([], "nothing int")  # a thread that is new to Spark has no active session
        self.spark.dataSource.register(TableSource)
        self.spark.dataSource.register(TableSink)
        for name in step.inputs:
            self._rows(self.pipeline.step(name)).createOrReplaceTempView(f"`{name}`")
        try:
            found = self.spark.sql(step.settings["sql"])
            found.schema  # noqa: B018 (over Spark Connect it is analysed now)
        except (AnalysisException, ParseException) as error:
            raise PipelineError(reason(str(error))) from None
        if not found.isStreaming:
            raise PipelineError("it reads no table that others add to: nothing tells it when to run")
        return found

    def _rows(self, step: Step) -> DataFrame:
        """The rows of a step's table: those that come, or, where it is replaced as a whole, those that
        are."""
        address = self._address(step)
        topics = step.settings["topics"] if step.kind == "archive" else ()
        options = options_of(address, self._columns(step), topics)
        if step.is_replaced:
            return self.spark.read.format(SOURCE).options(**options).load()
        return observed(
            self.spark.readStream.format(SOURCE).options(**options).load(), f"{OBSERVED} {step.name}"
        )

    def _columns(self, step: Step) -> str:
        if step.kind == "archive":
            schema = open_table(self._address(step)).schema()
            new = {name: kind for name, kind in _kinds(step).items() if name not in schema.names}
            return ddl([*schema, *list(with_json(new))[-len(new) :]] if new else schema)
        if step.kind == "merge":
            return _spark_ddl(open_derived(self._address(step)).load().schema)
        return self.columns[step.name]

    def _address(self, step: Step) -> TableAddress:
        given = step.settings
        return TableAddress(
            given["to"],
            given.get("format", "delta"),
            given.get("catalog", ""),
            given.get("table", "postroad.archive" if step.kind == "archive" else f"postroad.{step.name}"),
        )

    def _checkpoint(self, step: Step) -> Any:
        return self.pipeline.directory(step) / "checkpoint"

    def _every_s(self, step: Step) -> float:
        return seconds(step.settings["every"]) if "every" in step.settings else self.pipeline.every_s


class _Tidying:
    """Files of earlier states of a table are deleted after a day: once an hour, or after a run that ends."""

    def __init__(self, table: DerivedTable | None) -> None:
        self._table = table
        self._next = time.monotonic() + TIDY_EVERY_S

    def now_and_then(self) -> None:
        if time.monotonic() >= self._next:
            self.run()
            self._next = time.monotonic() + TIDY_EVERY_S

    def run(self) -> None:
        """Rows come first: what fails is told, and ends no step."""
        if self._table is None:
            return
        try:
            over_conflicts(partial(self._table.tidy, KEEP_S))
        except Exception as error:
            log.warning("%s: not tidied now, the next time will do: %s", self._table.location, error)


def _moved(told: Any) -> Moved:
    """What a micro-batch took from the steps that it follows, by its progress."""
    sizes = [row[BYTES] or 0 for name, row in told["observedMetrics"].items() if name.startswith(OBSERVED)]
    return Moved(int(told["numInputRows"]), sum(sizes))


def _check_columns(rows: DataFrame) -> None:
    if "value" not in rows.columns:
        raise PipelineError("the SQL gives no column `value`, which is the message")


def _options(step: Step) -> dict[str, str]:
    given = step.settings.get("options", {})
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()
    }


def _kinds(step: Step) -> dict[str, Kind]:
    return kinds_of_ddl(step.settings["json-schema"]) if "json-schema" in step.settings else {}


def _spark_ddl(schema: Any) -> str:
    from pyspark.sql.pandas.types import from_arrow_schema

    return str(from_arrow_schema(schema).toDDL())
