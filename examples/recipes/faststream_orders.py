"""FastStream on Postroad: its Kafka broker, unchanged.

faststream run faststream_orders:app          # in earnest
python faststream_orders.py 127.0.0.1:9092
"""

import asyncio
import sys
import uuid

from faststream import FastStream
from faststream.confluent import KafkaBroker
from pydantic import BaseModel

run = uuid.uuid4().hex[:8]
broker = KafkaBroker(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092", logger=None)
app = FastStream(broker)
billed = asyncio.Event()


class Order(BaseModel):
    number: int
    total: int


@broker.subscriber(f"orders-{run}", group_id=f"billing-{run}", auto_offset_reset="earliest")
@broker.publisher(f"invoices-{run}")
async def bill(order: Order) -> str:
    print("billing order", order.number)
    return f"order {order.number}: {order.total} euros"


@broker.subscriber(f"invoices-{run}", group_id=f"mail-{run}", auto_offset_reset="earliest")
async def mail(invoice: str) -> None:
    print("mailing", invoice)
    billed.set()


async def try_it() -> None:
    async with broker:
        await broker.start()
        await broker.publish(Order(number=7, total=10), f"orders-{run}")
        await asyncio.wait_for(billed.wait(), 30)


if __name__ == "__main__":
    asyncio.run(try_it())
