"""dramatiq on Postroad's SQS gateway, by its SQS broker.

    python dramatiq_actors.py 127.0.0.1:9092 http://127.0.0.1:8080

In earnest the worker is `dramatiq dramatiq_actors`; here it runs in this process until all is done.
"""

import os
import sys
import uuid

import dramatiq
from dramatiq.worker import Worker
from dramatiq_sqs import SQSBroker

http = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("POSTROAD_HTTP", "http://127.0.0.1:8080")
broker = SQSBroker(
    namespace=f"actors_{uuid.uuid4().hex[:8]}",
    endpoint_url=http,
    region_name="us-east-1",
    aws_access_key_id="any",
    aws_secret_access_key="any",
)
dramatiq.set_broker(broker)
done = []


@dramatiq.actor(max_retries=3, min_backoff=100, max_backoff=100)
def resize(picture: str) -> None:
    if picture == "dog.jpg" and "tried" not in done:
        done.append("tried")
        raise OSError("not yet")
    done.append(picture)


if __name__ == "__main__":
    resize.send("cat.jpg")
    resize.send("dog.jpg")
    worker = Worker(broker, worker_timeout=100)
    worker.start()
    while not {"cat.jpg", "dog.jpg"} <= set(done):
        worker.join()
    worker.stop()
    print("done:", *sorted(done))
