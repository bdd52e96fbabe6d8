"""IncrementalAlterConfigs (44), versions 0–1: single overrides are set, deleted, appended to (KIP-339)."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.api.alter_configs import alter_resource, check_group_config, tell_changed
from postroad.broker.api.describe_configs import check_configs
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasSettings, HasSubscriptions, HasTopicChanges
from postroad.cluster import controller
from postroad.cluster.config_definition import ConfigResource
from postroad.cluster.controller import ConfigChange, Decision
from postroad.cluster.image import Image
from postroad.cluster.node_config import alter_node_config
from postroad.errors import ApiError, InvalidRequest
from postroad.security.resources import Operation
from postroad.wire.messages import incremental_alter_configs as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.ALTER_CONFIGS, group=Operation.ALTER_CONFIGS)


class Uses(HasSettings, HasSubscriptions, HasTopicChanges, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _alter(node, call.access, request, call.version)


async def _alter(
    node: Uses, access: Access, request: codec.IncrementalAlterConfigsRequest, version: int
) -> bytes:
    responses = [
        await _alter_one(node, access, resource, request.validate_only) for resource in request.resources
    ]
    return codec.encode_response(codec.IncrementalAlterConfigsResponse(responses=responses), version)


async def _alter_one(
    node: Uses, access: Access, resource: codec.AlterConfigsResource, validate_only: bool
) -> codec.AlterConfigsResourceResponse:
    response = codec.AlterConfigsResourceResponse(0, None, resource.resource_type, resource.resource_name)
    kind, name = resource.resource_type, resource.resource_name
    changes = [ConfigChange(given.name, given.config_operation, given.value) for given in resource.configs]

    def decide(image: Image) -> Decision:
        if kind == ConfigResource.GROUP:
            check = node.subscriptions.letter_routes.check_config
            return controller.alter_group_config(image, name, changes, check, node.settings.group_defaults)
        return controller.alter_config(image, name, changes, node.settings.topic_defaults)

    try:
        check_configs(access, kind, name, Operation.ALTER_CONFIGS)
        if kind not in (ConfigResource.TOPIC, ConfigResource.NODE, ConfigResource.GROUP):
            raise InvalidRequest(
                f"There are configs of topics (2), nodes (4) and groups (32), not of {kind}."
            )
        if kind == ConfigResource.NODE:
            await node.topic_changes.alter_nodes(
                lambda image: alter_node_config(image, name, changes), validate_only
            )
            return response
        if kind == ConfigResource.GROUP:
            check_group_config(access, [(change.name, change.value) for change in changes])
        await alter_resource(node, kind, name, decide, validate_only)
        if not validate_only:
            tell_changed(access, kind, name, [change.name for change in changes])
    except ApiError as error:
        response.error_code, response.error_message = error.code, str(error)
    return response
