"""AlterConfigs (33), versions 0–2: the overrides of a topic (2) or group (32) are replaced as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasSettings, HasSubscriptions, HasTopicChanges
from postroad.cluster import controller
from postroad.cluster.config_definition import ConfigResource
from postroad.cluster.controller import Decision
from postroad.cluster.image import Image
from postroad.errors import ApiError, InvalidRequest
from postroad.wire.messages import alter_configs as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM


class Uses(HasSettings, HasSubscriptions, HasTopicChanges, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _alter(node, request, call.version)


async def _alter(node: Uses, request: codec.AlterConfigsRequest, version: int) -> bytes:
    responses = [await _alter_one(node, resource, request.validate_only) for resource in request.resources]
    return codec.encode_response(codec.AlterConfigsResponse(responses=responses), version)


async def _alter_one(
    node: Uses, resource: codec.AlterConfigsResource, validate_only: bool
) -> codec.AlterConfigsResourceResponse:
    response = codec.AlterConfigsResourceResponse(0, None, resource.resource_type, resource.resource_name)
    kind, name = resource.resource_type, resource.resource_name
    config = {given.name: given.value for given in resource.configs}

    def decide(image: Image) -> Decision:
        if kind == ConfigResource.GROUP:
            check = node.subscriptions.letter_routes.check_config
            defaults = node.settings.group_defaults
            return controller.replace_group_config(image, name, config, check, defaults)
        return controller.replace_config(image, name, config)

    try:
        await alter_resource(node, kind, name, decide, validate_only)
    except ApiError as error:
        response.error_code, response.error_message = error.code, str(error)
    return response


async def alter_resource(
    node: Uses, kind: int, name: str, make: Callable[[Image], Decision], validate_only: bool
) -> None:
    """Commit what `make` decides; when it returns the node acts on it. Raises what is wrong with it."""
    _check_kind(kind)
    await node.topic_changes.alter(make, validate_only)
    if kind == ConfigResource.GROUP and not validate_only:
        await node.subscriptions.configured(name)


def _check_kind(kind: int) -> None:
    if kind == ConfigResource.NODE:
        raise InvalidRequest(
            "A node's settings come from its file, environment and flags; see `postroad config`."
        )
    if kind not in (ConfigResource.TOPIC, ConfigResource.GROUP):
        raise InvalidRequest(f"Configs of topics (2) and groups (32) can be altered, none of type {kind}.")
