"""AlterConfigs (33), versions 0–2: the overrides of a topic (2) or group (32) are replaced as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.api.describe_configs import check_configs
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasSettings, HasSubscriptions, HasTopicChanges
from postroad.cluster import controller
from postroad.cluster.config_definition import ConfigResource
from postroad.cluster.controller import Decision
from postroad.cluster.image import Image
from postroad.cluster.named_topics import TOPICS_CONFIG, named_topics
from postroad.errors import ApiError, InvalidRequest
from postroad.security.resources import Operation
from postroad.wire.messages import alter_configs as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
DEAD_LETTER_CONFIG: Final = "errors.deadletterqueue.topic.name"
# What gateways act by, with their own rights, for whoever has asked them.
GATEWAY_CONFIGS: Final = ("postroad.redrives", "postroad.redrives.cancel", "postroad.sqs", "postroad.webhook")
RIGHTS: Final = Rights(topic=Operation.ALTER_CONFIGS, group=Operation.ALTER_CONFIGS)


class Uses(HasSettings, HasSubscriptions, HasTopicChanges, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _alter(node, call.access, request, call.version)


async def _alter(node: Uses, access: Access, request: codec.AlterConfigsRequest, version: int) -> bytes:
    responses = [
        await _alter_one(node, access, resource, request.validate_only) for resource in request.resources
    ]
    return codec.encode_response(codec.AlterConfigsResponse(responses=responses), version)


async def _alter_one(
    node: Uses, access: Access, resource: codec.AlterConfigsResource, validate_only: bool
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
        check_configs(access, kind, name, Operation.ALTER_CONFIGS)
        _check_kind(kind)
        if kind == ConfigResource.GROUP:
            check_group_config(access, config.items())
        await alter_resource(node, kind, name, decide, validate_only)
        if not validate_only:
            tell_changed(access, kind, name, list(config))
    except ApiError as error:
        response.error_code, response.error_message = error.code, str(error)
    return response


def tell_changed(access: Access, kind: int, name: str, configs: list[str]) -> None:
    """For the audit log, without values: some are secrets."""
    access.changed("config altered", resource=ConfigResource(kind).name.lower(), name=name, configs=configs)


def check_group_config(access: Access, given: Iterable[tuple[str, str | None]]) -> None:
    """Raises where nodes or gateways would do for the caller what he may not do himself."""
    for name, value in given:
        if name == TOPICS_CONFIG:
            for topic in named_topics({TOPICS_CONFIG: value or ""}):
                access.check_topic(topic, Operation.READ)  # messages that expire are copied, too
        elif name == DEAD_LETTER_CONFIG and value:
            access.check_topic(value, Operation.WRITE)
        elif name in GATEWAY_CONFIGS and value:
            access.check_cluster(Operation.CLUSTER_ACTION)


async def alter_resource(
    node: Uses, kind: int, name: str, make: Callable[[Image], Decision], validate_only: bool
) -> None:
    """Commit what `make` decides; when it returns the node acts on it. Raises what is wrong with it."""
    await node.topic_changes.alter(make, validate_only)
    if kind == ConfigResource.GROUP and not validate_only:
        await node.subscriptions.configured(name)


def _check_kind(kind: int) -> None:
    if kind == ConfigResource.NODE:
        raise InvalidRequest(
            "A node's settings come from its file, environment and flags; see `postroad config`. Those that "
            "can be changed while it runs are changed one by one (IncrementalAlterConfigs)."
        )
    if kind not in (ConfigResource.TOPIC, ConfigResource.GROUP):
        raise InvalidRequest(f"Configs of topics (2) and groups (32) can be altered, none of type {kind}.")
