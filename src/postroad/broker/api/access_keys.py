"""AccessKeys (10008), version 0: users' keys for signed requests (SigV4) are made, listed, disabled, deleted.

Postroad's own: Kafka has nothing for it. Not advertised (see `wire.access_keys`). Any node takes it. The
secret is in the answer to who has made the key, and nowhere else: it can be made again from the master key.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasClock, HasImage, HasRuntime, HasSecurity, HasTopics
from postroad.cluster import users
from postroad.cluster.image import Image
from postroad.cluster.keys import AccessKeyValue
from postroad.errors import ApiError, ClusterAuthorizationFailed, SecurityDisabled
from postroad.security import access_keys
from postroad.security.resources import Operation
from postroad.wire import access_keys as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.DESCRIBE)
ADVERTISED: Final = False


class Uses(HasClock, HasImage, HasRuntime, HasSecurity, HasTopics, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    order = codec.decode_request(call.body, call.version)
    if not isinstance(order, codec.ListKeys) and not call.access.may_cluster(Operation.ALTER):
        return refuse(node, call)
    return _answer(node, call, order, call.version)


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    return codec.encode_response(codec.KeysAnswer(error.code, str(error)), call.version)


async def _answer(node: Uses, call: Call, order: codec.AnyOrder, version: int) -> bytes:
    try:
        if not node.security.enabled:
            raise SecurityDisabled()
        answer = codec.KeysAnswer(keys=await _obey(node, call, order))
    except ApiError as error:
        answer = codec.KeysAnswer(error.code, str(error))
    return codec.encode_response(answer, version)


async def _obey(node: Uses, call: Call, order: codec.AnyOrder) -> list[codec.AccessKey]:
    note = partial(node.security.note, connection=call.connection)
    match order:
        case codec.ListKeys(user):
            return _listed(node.image, user)
        case codec.CreateKey(user):
            made = await _create(node, user)
            note("access key created", user=user, key=made.id)
            return [made]
        case codec.EnableKey(key_id, enabled):
            await node.topics.decide(partial(users.enable_key, key_id=key_id, enabled=enabled))
            note("access key enabled" if enabled else "access key disabled", key=key_id)
        case codec.DeleteKey(key_id):
            await node.topics.decide(
                partial(users.delete_key, key_id=key_id),
                done=lambda image: key_id not in image.access_keys,
            )
            note("access key deleted", key=key_id)
    return []


async def _create(node: Uses, user: str) -> codec.AccessKey:
    key_id = access_keys.new_id(node.runtime.random.randbytes(access_keys.ID_BYTES))
    value = AccessKeyValue(access_keys.FIRST_VERSION, node.clock.now_ms())
    await node.topics.decide(partial(users.create_key, name=user, key_id=key_id, key=value))
    secret = access_keys.secret_of(node.security.master_key, key_id, value.version)
    return codec.AccessKey(key_id, user, created_ms=value.created_ms, secret=secret)


def _listed(image: Image, user: str | None) -> list[codec.AccessKey]:
    return [
        codec.AccessKey(key_id, name, key.enabled, key.created_ms)
        for name, found in sorted(image.users.items())
        if user in (None, name)
        for key_id, key in sorted(found.keys.items(), key=lambda item: (item[1].created_ms, item[0]))
    ]
