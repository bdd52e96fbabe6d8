"""DescribeCluster (60), versions 0–2: the nodes and the cluster's id."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import CLUSTER, Rights
from postroad.broker.cluster_view import ClusterView
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasRegistration
from postroad.errors import InvalidRequest
from postroad.security.resources import CLUSTER_NAME, Operation
from postroad.wire.messages import describe_cluster as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights()  # whoever may connect may know where the nodes are

BROKERS: Final = 1


class Uses(HasImage, HasRegistration, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    response = codec.DescribeClusterResponse(
        endpoint_type=request.endpoint_type, cluster_id=node.image.cluster_id or ""
    )
    if call.version >= 1 and request.endpoint_type != BROKERS:
        response.error_code = InvalidRequest.code
        response.error_message = "Every node is reached at its Kafka address: ask for endpoint type 1."
        return codec.encode_response(response, call.version)
    view = ClusterView(node.image, node.registration.me, call.connection.listener)
    response.controller_id = view.controller()
    response.brokers = [
        codec.DescribeClusterBroker(entry.id, *view.address(entry), entry.rack or None)
        for entry in view.nodes()
    ]
    if request.include_fenced_brokers:
        response.brokers += [
            codec.DescribeClusterBroker(entry.id, *view.address(entry), entry.rack or None, is_fenced=True)
            for entry in node.image.nodes.values()
            if view.node(entry.id) is None
        ]
    if request.include_cluster_authorized_operations and call.access.may_cluster(Operation.DESCRIBE):
        response.cluster_authorized_operations = call.access.operations(CLUSTER, CLUSTER_NAME)
    return codec.encode_response(response, call.version)
