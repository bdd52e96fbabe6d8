"""AlterConfigs (33), versions 0–2: a topic's overrides are replaced as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from postroad.broker.dispatch import Call, Result
from postroad.cluster import controller
from postroad.errors import ApiError, InvalidRequest
from postroad.wire.messages import alter_configs as codec

if TYPE_CHECKING:
    from postroad.broker.node import Node

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM

TOPIC, NODE = 2, 4


def handle(node: Node, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _alter(node, request, call.version)


async def _alter(node: Node, request: codec.AlterConfigsRequest, version: int) -> bytes:
    responses = [await _alter_one(node, resource, request.validate_only) for resource in request.resources]
    return codec.encode_response(codec.AlterConfigsResponse(responses=responses), version)


async def _alter_one(
    node: Node, resource: codec.AlterConfigsResource, validate_only: bool
) -> codec.AlterConfigsResourceResponse:
    response = codec.AlterConfigsResourceResponse(0, None, resource.resource_type, resource.resource_name)
    config = {given.name: given.value for given in resource.configs}
    try:
        check_topic(resource.resource_type)
        await node.alter(
            lambda image: controller.replace_config(image, resource.resource_name, config), validate_only
        )
    except ApiError as error:
        response.error_code, response.error_message = error.code, str(error)
    return response


def check_topic(resource_type: int) -> None:
    if resource_type == NODE:
        raise InvalidRequest(
            "A node's settings come from its file, environment and flags; see `postroad config`."
        )
    if resource_type != TOPIC:
        raise InvalidRequest(f"Configs of topics (2) can be altered, none of type {resource_type}.")
