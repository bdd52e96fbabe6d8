"""Airflow on Postroad: a DAG waits for messages, archives the topic, works on what came, and tells others.

    python airflow_orders.py 127.0.0.1:9092

In earnest it lies in Airflow's folder of DAGs, and `airflow connections add` made the connection `postroad`.
"""

import os
import sys

from airflow.sdk import DAG, task

from postroad.schedulers.airflow import (
    CaughtUpSensor,
    MessagesSensor,
    PipelineOperator,
    PostroadHook,
    PublishOperator,
)

LAKE = os.environ.get("LAKE", "lake/orders")
SPARK = os.environ.get("PIPELINE_PROGRAM")  # an installation with Spark, if Airflow's own has none

with DAG("web_orders", schedule="@continuous", max_active_runs=1, catchup=False) as dag:
    come = MessagesSensor(
        task_id="come",
        group="web-invoices",
        topics=["web-orders"],
        at_least=3,
        poke_interval=10,
        mode="reschedule",
        conn_id="postroad",
    )
    archived = PipelineOperator(
        task_id="archived",
        arguments=["archive", "--topic", "web-orders", "--to", LAKE, "--once"],
        program=SPARK,
        conn_id="postroad",
    )

    @task
    def bill() -> int:
        """One by one, as a subscription: what fails comes again, in this run or in the next one."""
        total = 0
        with PostroadHook("postroad").client() as client:
            orders = client.receive("web-invoices", topic="web-orders", of=dict)
            while (order := orders.next(timeout_s=2)) is not None:
                with order:
                    total += order.value["total"]
        return total

    billed = CaughtUpSensor(task_id="billed", group="web-invoices", conn_id="postroad")
    told = PublishOperator(
        task_id="told",
        topic="web-billed",
        value="billed {{ ti.xcom_pull('bill') }} euros, archived {{ ti.xcom_pull('archived').rows }} orders",
        conn_id="postroad",
    )
    come >> archived >> bill() >> billed >> told


def try_it(bootstrap: str) -> None:
    """What a scheduler does, in this process."""
    os.environ["AIRFLOW_CONN_POSTROAD"] = f"postroad://{bootstrap}"
    with PostroadHook("postroad").client() as client:
        client.publish_many("web-orders", [{"total": total} for total in (10, 20, 30)])
        print(dag.test().state)
        with client.subscribe("web-billed", group="mail", of=str) as messages:
            print(next(messages).value)


if __name__ == "__main__":
    try_it(sys.argv[1])
