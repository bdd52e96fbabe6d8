"""A resource, a sensor and assets for Dagster: `pip install 'postroad[dagster]'`.

defs = Definitions(
    assets=[pipeline_asset("orders", ["archive", "-t", "orders", "--to", "s3://lake/orders", "--once"])],
    jobs=[report],
    sensors=[messages_sensor(report, group="reports", topics=["orders"])],
    resources={"postroad": PostroadResource(bootstrap="kafka:9092")},
)
"""

# No annotations as text here: Dagster reads those of its users' functions as they are.
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import dagster
from dagster import DagsterRunStatus, MaterializeResult, RunRequest, RunsFilter, SkipReason

from postroad.schedulers.access import Access
from postroad.schedulers.command import Command
from postroad.schedulers.waiting import messages_waiting
from postroad.workers.blocking import SyncClient

RESOURCE = "postroad"
SENSOR_INTERVAL_S = 30
UNDER_WAY = (
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
)


class PostroadResource(dagster.ConfigurableResource):  # type: ignore[misc,unused-ignore]
    """A cluster. What is left empty is as for every client: POSTROAD_BOOTSTRAP, POSTROAD_PROFILE.

    Give the password by `dagster.EnvVar`. `program` is the command of an installation with Spark, where this
    one has none.
    """

    bootstrap: str = ""
    user: str = ""
    password: str = ""
    profile: str = ""
    program: str = ""

    @contextmanager
    def client(self) -> Iterator[SyncClient]:
        """A `postroad.SyncClient`, while the block runs."""
        with self._access().client() as client:
            yield client

    def waiting(self, group: str, topics: Sequence[str] = ()) -> int:
        """How many messages wait for a consumer group or a subscription, as `messages_waiting` says."""
        return messages_waiting(self._access(), group, topics)

    def run(self, arguments: Sequence[str], tell: Any = print) -> Any:
        """Runs `postroad` with these arguments; its last line of JSON, or None."""
        return Command(arguments, self._access(), self.program or None).run(tell)

    def _access(self) -> Access:
        return Access(self.bootstrap, self.user, self.password, self.profile)


def messages_sensor(
    job: Any,
    *,
    group: str,
    topics: Sequence[str] = (),
    at_least: int = 1,
    name: str | None = None,
    run_config: Mapping[str, Any] | None = None,
    minimum_interval_seconds: int = SENSOR_INTERVAL_S,
    resource: str = RESOURCE,
) -> Any:
    """A sensor that runs the job when `at_least` messages wait for a consumer group or a subscription.

    One run at a time, and as long as messages wait: so a run that failed is followed by another one.
    """

    def look(context: dagster.SensorEvaluationContext) -> Any:
        waiting = getattr(context.resources, resource).waiting(group, topics)
        if waiting < at_least:
            return SkipReason(f"{waiting} messages wait for {group}")
        if context.instance.get_runs_count(RunsFilter(job_name=job.name, statuses=list(UNDER_WAY))):
            return SkipReason(f"a run of {job.name} is under way")
        return RunRequest(run_config=dict(run_config or {}), tags={"postroad/waiting": str(waiting)})

    return dagster.SensorDefinition(
        name=name or f"{job.name}_messages",
        evaluation_fn=look,
        job=job,
        minimum_interval_seconds=minimum_interval_seconds,
        required_resource_keys={resource},
    )


def pipeline_asset(name: str, arguments: Sequence[str], *, resource: str = RESOURCE, **asset: Any) -> Any:
    """An asset that `postroad pipeline` makes with these arguments. What it says at its end is the metadata.

    Other arguments are those of `dagster.asset`: deps, group_name, partitions_def …
    """

    @dagster.asset(  # type: ignore[untyped-decorator,unused-ignore]
        name=name, required_resource_keys={resource}, kinds={"spark"}, **asset
    )
    def made(context: dagster.AssetExecutionContext) -> MaterializeResult:
        words = ["pipeline", *arguments, "--json"]
        found = getattr(context.resources, resource).run(words, context.log.info)
        return MaterializeResult(metadata=_metadata(found))

    return made


def _metadata(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        return {}
    plain = (str, int, float, bool)
    return {
        key: value if isinstance(value, plain) else json.loads(json.dumps(value))
        for key, value in found.items()
        if value is not None
    }
