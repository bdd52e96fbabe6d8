"""How Spark logs in to a secured node."""

from __future__ import annotations

from tests.secure_node import SecureNode

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def options(node: SecureNode, mechanism: str = "SCRAM-SHA-256", password: str = "") -> dict[str, str]:
    """As Spark's Kafka connector takes them."""
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    password = password or node.admin["password"]
    return {
        "kafka.bootstrap.servers": node.bootstrap,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": f'{module} required username="admin" password="{password}";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(node.ca),
    }
