"""Celery on Postroad's SQS gateway: tasks as they are, another address of the broker.

    python celery_tasks.py 127.0.0.1:9092 http://127.0.0.1:8080

It sends two tasks and runs the worker, `celery -A celery_tasks worker`, until they are done.
"""

import os
import subprocess
import sys
import uuid
from pathlib import Path

from celery import Celery

GATEWAY = os.environ.get("POSTROAD_HTTP", "http://127.0.0.1:8080")

# The credentials are any words, unless the gateway asks for those of a user.
app = Celery("tasks", broker=f"sqs://any:any@{GATEWAY.removeprefix('http://')}//")
app.conf.update(
    task_default_queue=os.environ.get("TASKS_QUEUE", "celery"),
    task_acks_late=True,  # a task whose worker dies comes again
    worker_enable_remote_control=False,  # SQS has no broadcast
    worker_redirect_stdouts=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"region": "us-east-1", "is_secure": False, "wait_time_seconds": 1},
)


@app.task(name="resize", bind=True, max_retries=3)
def resize(self, picture: str) -> None:
    if picture == "dog.jpg" and not self.request.retries:
        print("not yet:", picture, flush=True)
        raise self.retry(countdown=1)
    print("resized", picture, flush=True)


def main(http: str) -> None:
    queue = f"tasks-{uuid.uuid4().hex[:8]}"
    app.conf.update(broker_url=f"sqs://any:any@{http.removeprefix('http://')}//", task_default_queue=queue)
    resize.delay("dog.jpg")
    resize.delay("cat.jpg")
    command = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "--pool=solo", "-l", "ERROR"]
    environment = {**os.environ, "POSTROAD_HTTP": http, "TASKS_QUEUE": queue}
    with subprocess.Popen(
        command, cwd=Path(__file__).parent, env=environment, stdout=subprocess.PIPE, text=True
    ) as worker:
        for line in worker.stdout:
            if line.startswith(("not yet", "resized")):
                print(line.strip())
            if line == "resized dog.jpg\n":
                break
        worker.terminate()


if __name__ == "__main__":
    main(sys.argv[2])
