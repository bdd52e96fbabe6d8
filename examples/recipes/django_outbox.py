"""Django with an outbox: a row and its message are saved in one transaction, and none is lost or made up.

    python django_outbox.py 127.0.0.1:9092

A whole project in one file; `Outbox`, `publish_later` and `relay` are what you would take.
"""

import json
import sys
import uuid

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

from django.db import connection, models, transaction  # noqa: E402

import postroad  # noqa: E402

topic = f"orders-{uuid.uuid4().hex[:8]}"
client = postroad.SyncClient(sys.argv[1])


class Order(models.Model):
    total = models.IntegerField()

    class Meta:
        app_label = "shop"


class Outbox(models.Model):
    topic = models.TextField()
    key = models.TextField()
    payload = models.BinaryField()

    class Meta:
        app_label = "shop"


def publish_later(topic: str, value: object, key: str) -> None:
    """Within a transaction: the message is published if that commits, and only then."""
    Outbox.objects.create(topic=topic, key=key, payload=json.dumps(value).encode())


def relay() -> int:
    """Publish what waits, in order. Run it in a loop, in one process; it may die at any line."""
    count = 0
    for row in Outbox.objects.order_by("pk"):
        # A relay that dies before it deletes the row publishes it again, with the same id: subscriptions with
        # postroad.deduplicate.ms deliver one of them.
        client.publish(row.topic, bytes(row.payload), key=row.key, id=f"outbox-{row.pk}")
        row.delete()
        count += 1
    return count


with connection.schema_editor() as editor:
    editor.create_model(Order)
    editor.create_model(Outbox)

with transaction.atomic():
    order = Order.objects.create(total=10)
    publish_later(topic, {"order": order.pk, "total": order.total}, key=str(order.pk))
try:
    with transaction.atomic():
        order = Order.objects.create(total=99)
        publish_later(topic, {"order": order.pk, "total": order.total}, key=str(order.pk))
        raise ValueError("no such customer")
except ValueError as error:
    print("rolled back:", error)

print("relayed", relay())
with client.receive(f"{topic}-billing", topic=topic, of=dict) as messages:
    for message in messages:
        with message:
            print("billed order", message.value["order"], "of", message.value["total"])
        break
client.close()
