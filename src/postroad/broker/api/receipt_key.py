"""ReceiptKey (10003), version 0: what gateways seal their receipts with, made when the first one asks.

Postroad's own: it is kept in the coordination store, which gateways don't see, and is no config, which any
client may describe. Not advertised (see `wire.receipt_key`).
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasRuntime, HasTopics
from postroad.cluster import controller
from postroad.errors import ApiError, ClusterAuthorizationFailed
from postroad.security.resources import Operation
from postroad.wire import receipt_key as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.CLUSTER_ACTION)
ADVERTISED: Final = False


class Uses(HasImage, HasRuntime, HasTopics, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    codec.decode_request(call.body, call.version)
    return _answer(node, call.version)


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    return codec.encode_response(codec.ReceiptKeyResponse(error_code=error.code), call.version)


async def _answer(node: Uses, version: int) -> bytes:
    random = node.runtime.random.randbytes(codec.KEY_BYTES)
    try:
        await node.topics.decide(lambda image: controller.create_receipt_key(image, random))
    except ApiError as error:
        return codec.encode_response(codec.ReceiptKeyResponse(error_code=error.code), version)
    assert node.image.receipt_key is not None
    return codec.encode_response(codec.ReceiptKeyResponse(key=node.image.receipt_key), version)
