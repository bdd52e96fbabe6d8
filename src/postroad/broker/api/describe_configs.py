"""DescribeConfigs (32), versions 1–4: of topics (2), of this node (4) and of groups (32)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from postroad import config
from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasAdvertisedPort, HasImage, HasLoaded, HasSettings
from postroad.cluster import group_config, node_config, topic_config
from postroad.cluster.config_definition import (
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigType,
    Synonym,
)
from postroad.cluster.topics import name_error
from postroad.errors import ApiError, InvalidRequest, UnknownTopicOrPartition
from postroad.security.resources import Operation
from postroad.wire.messages import describe_configs as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.DESCRIBE_CONFIGS, group=Operation.DESCRIBE_CONFIGS)


class Uses(HasAdvertisedPort, HasImage, HasLoaded, HasSettings, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    results = [_describe(node, call.access, resource, request) for resource in request.resources]
    return codec.encode_response(codec.DescribeConfigsResponse(results=results), call.version)


def _describe(
    node: Uses,
    access: Access,
    resource: codec.DescribeConfigsResource,
    request: codec.DescribeConfigsRequest,
) -> codec.DescribeConfigsResult:
    result = codec.DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        check_configs(access, resource.resource_type, resource.resource_name, Operation.DESCRIBE_CONFIGS)
        entries = _entries(node, resource)
    except ApiError as error:
        result.error_code, result.error_message = error.code, str(error)
    else:
        result.configs = [_shown(entry, request) for entry in entries]
    return result


def check_configs(access: Access, kind: int, name: str, operation: Operation) -> None:
    """Raises where the caller may not do that with the configs of this resource."""
    if kind == ConfigResource.TOPIC:
        access.check_topic(name, operation)
    elif kind == ConfigResource.GROUP:
        access.check_group(name, operation)
    else:
        access.check_cluster(operation)


def _entries(node: Uses, resource: codec.DescribeConfigsResource) -> Iterable[ConfigEntry]:
    kind, name, keys = resource.resource_type, resource.resource_name, resource.configuration_keys
    match kind:
        case ConfigResource.TOPIC:
            topic = node.image.topics.get(name)
            if topic is None:
                raise name_error(name) or UnknownTopicOrPartition()
            entries = topic_config.describe(topic.config, node.settings.topic_defaults, keys)
            return [entry._replace(read_only=True) for entry in entries] if topic.internal else entries
        case ConfigResource.NODE:
            if name not in ("", str(node.settings.node.id)):
                raise InvalidRequest(f"This is node {node.settings.node.id}; ask node {name} itself.")
            settings = [_changed(node, entry) for entry in config.describe(node.loaded)]
            entries = sorted([*settings, _advertised_listeners(node)])
            return [entry for entry in entries if not keys or entry.name in keys]
        case ConfigResource.GROUP:
            if not name:
                raise InvalidRequest("A group's id is missing: there are no configs for all groups.")
            return group_config.describe(node.image.groups.get(name, {}), keys, node.settings.group_defaults)
    raise InvalidRequest(f"There are configs of topics (2), nodes (4) and groups (32), none of type {kind}.")


def _changed(node: Uses, entry: ConfigEntry) -> ConfigEntry:
    """The setting as it is now, where it can be changed while the node runs."""
    name = entry.name
    if name not in node_config.TABLE.definitions:
        return entry
    synonyms = [
        Synonym(name, given[name], source)
        for source, given in node_config.overrides(node.image, node.settings.node.id)
        if name in given
    ]
    value, source = (synonyms[0].value, synonyms[0].source) if synonyms else (entry.value, entry.source)
    return entry._replace(value=value, source=source, read_only=False, synonyms=(*synonyms, *entry.synonyms))


def _advertised_listeners(node: Uses) -> ConfigEntry:
    """Where clients are told to connect, as Kafka's tools look it up; the port may be one that was free."""
    value = f"PLAINTEXT://{node.settings.kafka.host_to_advertise}:{node.advertised_port}"
    synonym = Synonym("advertised.listeners", value, ConfigSource.NODE)
    documentation = "From kafka.advertised_host and kafka.advertised_port, else kafka.host and kafka.port."
    return ConfigEntry(
        "advertised.listeners", value, ConfigType.STRING, ConfigSource.NODE, True, documentation, (synonym,)
    )


def _shown(entry: ConfigEntry, request: codec.DescribeConfigsRequest) -> codec.DescribeConfigsResourceResult:
    secret = entry.type is ConfigType.PASSWORD
    return codec.DescribeConfigsResourceResult(
        entry.name,
        None if secret else entry.value,
        entry.read_only,
        entry.source,
        secret,
        [codec.DescribeConfigsSynonym(*synonym) for synonym in entry.synonyms]
        if request.include_synonyms and not secret
        else [],
        entry.type,
        entry.documentation if request.include_documentation else None,
    )
