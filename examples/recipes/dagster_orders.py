"""Dagster on Postroad: messages start a job, a topic becomes an asset, and a report is published.

dagster dev -f dagster_orders.py             # in earnest
python dagster_orders.py 127.0.0.1:9092
"""

import os
import sys

import dagster
from dagster import Definitions

from postroad.schedulers.dagster import PostroadResource, messages_sensor, pipeline_asset

orders = pipeline_asset("orders", ["archive", "--topic", "shop-orders", "--to", "lake/orders", "--once"])


@dagster.op
def bill(postroad: PostroadResource) -> int:
    """One by one, as a subscription: what fails comes again, in the next run."""
    total = 0
    with postroad.client() as client:
        waiting = client.receive("shop-invoices", topic="shop-orders", of=dict)
        while (order := waiting.next(timeout_s=2)) is not None:
            with order:
                total += order.value["total"]
    return total


@dagster.op
def tell(postroad: PostroadResource, total: int) -> None:
    with postroad.client() as client:
        client.publish("shop-billed", f"billed {total} euros")


@dagster.job
def billing() -> None:
    tell(bill())


# Where the cluster is POSTROAD_BOOTSTRAP says, or `bootstrap`. `program` is an installation with Spark.
postroad = PostroadResource(program=os.environ.get("PIPELINE_PROGRAM", ""))
come = messages_sensor(billing, group="shop-invoices", topics=["shop-orders"], at_least=3)
defs = Definitions(assets=[orders], jobs=[billing], sensors=[come], resources={"postroad": postroad})


def try_it() -> None:
    """What Dagster's daemon does, in this process."""
    with dagster.DagsterInstance.ephemeral() as instance, postroad.client() as client:
        for totals in ([10], [20, 30]):
            client.publish_many("shop-orders", [{"total": total} for total in totals])
            wanted = come.evaluate_tick(
                dagster.build_sensor_context(instance, resources={"postroad": postroad})
            )
            print(wanted.skip_message or f"{len(wanted.run_requests)} run is wanted")
        done = defs.resolve_job_def("billing").execute_in_process(instance=instance)
        with client.subscribe("shop-billed", group="mail", of=str) as messages:
            print(next(messages).value, "-", done.success)
        (made,) = dagster.materialize(
            [orders], resources={"postroad": postroad}, instance=instance
        ).asset_materializations_for_node("orders")
        print("archived", made.metadata["rows"].value, "orders")


if __name__ == "__main__":
    os.environ["POSTROAD_BOOTSTRAP"] = sys.argv[1]
    try_it()
