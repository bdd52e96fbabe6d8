"""Drivers and executors at a node that asks who they are: options of Kafka's clients, addresses, profiles."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from postroad.errors import BrokerNotAvailable, ConfigurationError, SaslAuthenticationFailed
from postroad.spark.cluster import Cluster
from postroad.spark.option_values import Values
from postroad.spark.options import cluster
from tests.secure_node import SecureNode, secure_node
from tests.spark.logins import SCRAM, options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADDRESS = {"kafka.bootstrap.servers": "127.0.0.1:1"}
LOGIN = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.jaas.config": f'{SCRAM} required username="x" password="y";',
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    with secure_node(tmp_path_factory.mktemp("secure"), {"http.enabled": False}) as running:
        running.call("topic", "create", "orders", "--partitions", "2")
        running.call("publish", "orders", "one", "two", "three")
        yield running


def connected(given: Mapping[str, str]) -> Cluster:
    return cluster(Values(given))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_options_of_a_kafka_client_log_in(node: SecureNode, mechanism: str) -> None:
    with connected(options(node, mechanism)) as found:
        assert list(found.topics()) == ["orders"]


def test_the_certificates_text_will_do_instead_of_its_file(node: SecureNode) -> None:
    given = options(node) | {"kafka.ssl.truststore.certificates": node.ca.read_text()}
    del given["kafka.ssl.truststore.location"]
    with connected(given) as found:
        assert list(found.topics()) == ["orders"]


@pytest.mark.parametrize("names_address", [True, False])
def test_a_profile_says_it_all(node: SecureNode, names_address: bool) -> None:
    given = {"profile": str(node.profile)}
    if names_address:
        given["kafka.bootstrap.servers"] = f"tls://{node.bootstrap}"
    with connected(given) as found:
        assert list(found.topics()) == ["orders"]


def test_an_address_may_name_a_profile(node: SecureNode) -> None:
    with Cluster(f"tls://{node.bootstrap}?profile={node.profile}") as found:
        assert list(found.topics()) == ["orders"]


def test_an_executor_needs_none_of_the_drivers_files(node: SecureNode, tmp_path: Path) -> None:
    ca, profile = tmp_path / "ca.pem", tmp_path / "profile"
    ca.write_bytes(node.ca.read_bytes())
    profile.write_text(node.profile.read_text().replace("tls/ca.pem", "ca.pem"))
    profile.chmod(0o600)
    travelling = pickle.dumps(Cluster(f"tls://{node.bootstrap}?profile={profile}"))
    ca.unlink()
    profile.unlink()
    with pickle.loads(travelling) as found:
        assert list(found.topics()) == ["orders"]


def test_a_wrong_password_is_said_at_once(node: SecureNode) -> None:
    with (
        connected(options(node, password="wrong")) as found,
        pytest.raises(SaslAuthenticationFailed, match="password is wrong"),
    ):
        found.topics()


def test_a_node_that_is_somebody_else_is_not_believed(node: SecureNode) -> None:
    given = options(node)
    del given["kafka.ssl.truststore.location"]
    given["kafka.default.api.timeout.ms"] = "1"
    with connected(given) as found, pytest.raises(BrokerNotAvailable, match="certificate is not believed"):
        found.topics()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kafka.security.protocol": "magic"}, "plaintext or ssl or sasl_plaintext or sasl_ssl"),
        ({"kafka.ssl.truststore.location": "ca.pem"}, "is for kafka.security.protocol=SSL"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "is for kafka.security.protocol=SASL_SSL"),
        ({"kafka.security.protocol": "SASL_SSL"}, "username=.*password="),
        (LOGIN | {"kafka.ssl.truststore.location": "a.jks"}, "only PEM files"),
        (
            LOGIN | {"kafka.ssl.truststore.location": "gone.pem", "kafka.ssl.truststore.type": "PEM"},
            "gone.pem can't be read",
        ),
        (LOGIN | {"kafka.bootstrap.servers": "tls://127.0.0.1:1"}, "says that already"),
        (LOGIN | {"profile": "gone.profile"}, "says that already"),
        ({"profile": "gone.profile"}, "gone.profile can't be read"),
    ],
)
def test_options_that_make_no_sense_are_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        connected(ADDRESS | given)


def test_a_session_that_ends_is_followed_by_another(tmp_path: Path) -> None:
    settings = {"http.enabled": False, "security.session_ms": 1000}
    with secure_node(tmp_path, settings) as node:
        node.call("topic", "create", "orders")
        with connected(options(node)) as found:
            first = found._router.connection()
            assert first.is_open
            first._ends_at = 0.0  # its time is over
            assert list(found.topics()) == ["orders"]
            assert found._router.connection() is not first


def test_spark_reads_and_writes_at_a_secured_node(spark: SparkSession, node: SecureNode) -> None:
    rows = spark.read.format("postroad").options(**options(node)).option("subscribe", "orders").load()
    assert sorted(bytes(row.value) for row in rows.collect()) == [b"one", b"three", b"two"]
    topic = f"t-{uuid.uuid4().hex[:10]}"
    node.call("topic", "create", topic)
    rows.select("value").write.format("postroad").mode("append").option("profile", str(node.profile)).option(
        "topic", topic
    ).save()
    assert sorted(node.call("consume", topic, "--count", "3").output.split()) == ["one", "three", "two"]
