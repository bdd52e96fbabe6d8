"""All that is compared, by its name."""

from __future__ import annotations

from benchmarks.clusters import CLUSTERS, PostroadCluster, PostroadTwo
from benchmarks.secured_servers import SECURED, PostroadRights, PostroadTls
from benchmarks.servers import (
    Kafka,
    Nats,
    Postroad,
    RabbitMQ,
    RabbitMQQuorum,
    Redis,
    Server,
)
from benchmarks.sqs_servers import ElasticMQ, Moto, PostroadGateway

OURS = (
    Postroad.name,
    PostroadGateway.name,
    PostroadCluster.name,
    PostroadTwo.name,
    PostroadTls.name,
    PostroadRights.name,
)

PEERS: dict[str, type[Server]] = {
    peer.name: peer
    for peer in (
        Postroad,
        Kafka,
        Nats,
        Redis,
        RabbitMQ,
        RabbitMQQuorum,
        PostroadGateway,
        Moto,
        ElasticMQ,
        *CLUSTERS,
        *SECURED,
    )
}
