"""A shop's pipeline, from its orders to tables and back to a topic, and what must come out of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.pipelines.merges import read_derived
from tests.spark import plain
from tests.spark.plain import Message

TEXT = """\
name = "shop"
every = "200ms"

[archive.orders]
topics = ["{topic}"]
to = "lake/orders"
json-schema = "id bigint, customer string, total double"
options = {{ maxOffsetsPerTrigger = {limit} }}

[merge.customers]
topic = "{topic}-customers"
to = "lake/customers"
json-schema = "name string"
buckets = 1

[table.paid]
sql = '''
select o.id, c.name, o.total, o.offset
from orders o left join customers c on c.message_key = cast(o.customer as binary)
where o.total > 0
'''
to = "lake/paid"

[table.revenue]
sql = "select name, count(*) as orders, sum(total) as total from paid group by name"
to = "lake/revenue"
mode = "complete"
format = "iceberg"

[topic.large]
sql = "select name as key, to_json(struct(id, total)) as value from paid where total >= 100"
topic = "{topic}-large"
"""
NAMES = {"a": "Ann", "b": "Bob"}


def declare(home: Path, topic: str, limit: int = 1000) -> Path:
    file = home / "pipeline.toml"
    file.write_text(TEXT.format(topic=topic, limit=limit))
    return file


def create_topics(bootstrap: str, topic: str) -> None:
    plain.create(bootstrap, topic, 2)
    plain.create(bootstrap, f"{topic}-large")
    plain.create(bootstrap, f"{topic}-customers")
    customers = [Message(b'{"name": "%s"}' % name.encode(), key.encode()) for key, name in NAMES.items()]
    plain.send(bootstrap, f"{topic}-customers", customers)


def orders(first: int, count: int) -> list[Message]:
    """A third of the orders are worth nothing."""
    return [
        Message(json.dumps(order(number)).encode(), partition=number % 2)
        for number in range(first, first + count)
    ]


def order(number: int) -> dict[str, Any]:
    return {"id": number, "customer": "ab"[number % 2], "total": float(number % 3 * 100)}


def check(bootstrap: str, topic: str, home: Path, count: int) -> None:
    """Each order is in each place once, as it must be."""
    paid = [order(number) for number in range(count) if order(number)["total"] > 0]
    expected = sorted((each["id"], NAMES[each["customer"]], each["total"]) for each in paid)
    assert len(DeltaTable(home / "lake/orders").to_pyarrow_table(columns=["offset"])) == count
    rows = read_derived(home / "lake/paid", "delta", "postroad.paid")
    assert sorted((row["id"], row["name"], row["total"]) for row in rows) == expected
    revenue = read_derived(home / "lake/revenue", "iceberg", "postroad.revenue")
    orders_of, total_of = Counter[str](), Counter[str]()
    for _, name, total in expected:
        orders_of[name] += 1
        total_of[name] += total
    assert {row["name"]: (row["orders"], row["total"]) for row in revenue} == {
        name: (orders_of[name], total_of[name]) for name in orders_of
    }
    sent = [json.loads(row.value or b"")["id"] for row in plain.read_all(bootstrap, f"{topic}-large")]
    assert sorted(sent) == [number for number, _, _ in expected]
