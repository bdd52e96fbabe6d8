"""Stock clients and a node that asks who they are: passwords, rights, and the administration of both."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaTokenProvider

from postroad.client import Client
from postroad.client.login import Credentials
from tests import identity_provider
from tests.broker.secured import PASSWORD, Secured, secured_node
from tests.clients import java_client
from tests.clients.wait import until
from tests.spark.logins import SCRAM

MECHANISMS = ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("secured"), security_plain_on_loopback="true") as running:
        yield running


def settings(node: Secured, name: str, password: str = PASSWORD, mechanism: str = "SCRAM-SHA-256") -> Any:
    return {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
    }


@pytest.fixture(scope="module")
def admin(node: Secured) -> AdminClient:
    made = AdminClient(settings(node, "admin"))
    # librdkafka looks for a coordinator of every consumer's group, and reports that in front of messages.
    allow(made, acl(ResourceType.GROUP, "g", "*", AclOperation.READ))
    return made


def create(admin: AdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(10)


def add_user(
    admin: AdminClient, name: str, password: str, mechanism: Any = ScramMechanism.SCRAM_SHA_256
) -> None:
    info = ScramCredentialInfo(mechanism, 4096)
    change = UserScramCredentialUpsertion(name, info, password.encode())
    admin.alter_user_scram_credentials([change])[name].result(10)


def acl(
    kind: Any, name: str, who: str, operation: Any, permission: Any = AclPermissionType.ALLOW
) -> AclBinding:
    pattern = ResourcePatternType.LITERAL
    return AclBinding(kind, name, pattern, f"User:{who}", "*", operation, permission)


def allow(admin: AdminClient, *acls: AclBinding) -> None:
    for created in admin.create_acls(list(acls)).values():
        created.result(10)


def send(producer: Producer, topic: str, value: str) -> Any:
    """The error of the delivery; None: it is stored."""
    errors: list[Any] = []
    producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    producer.flush(15)
    return errors[0]


def receive(consumer: Consumer, topic: str) -> Any:
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(15)
    assert message is not None
    return message


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_may_write_writes_and_who_may_read_reads(
    node: Secured, admin: AdminClient, mechanism: str
) -> None:
    topic = f"orders-{mechanism.lower()}"
    create(admin, topic)
    for name in ("writer", "reader"):
        for each in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            add_user(admin, name, PASSWORD, each)
    writer = settings(node, "writer", mechanism=mechanism)
    reader = settings(node, "reader", mechanism=mechanism) | {
        "group.id": "g",
        "auto.offset.reset": "earliest",
    }
    allow(
        admin,
        acl(ResourceType.TOPIC, topic, "writer", AclOperation.WRITE),
        acl(ResourceType.TOPIC, topic, "reader", AclOperation.READ),
    )
    assert send(Producer(writer), topic, "one") is None
    denied = send(Producer(settings(node, "reader", mechanism=mechanism)), topic, "two")
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    consumer = Consumer(reader)
    assert receive(consumer, topic).value() == b"one"
    consumer.close()
    consumer = Consumer(writer | {"group.id": "g"})
    assert receive(consumer, topic).error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    consumer.close()


def test_an_idempotent_producer_needs_no_more_than_write(node: Secured, admin: AdminClient) -> None:
    create(admin, "exact")
    add_user(admin, "careful", PASSWORD)
    allow(admin, acl(ResourceType.TOPIC, "exact", "careful", AclOperation.WRITE))
    assert send(Producer(settings(node, "careful") | {"enable.idempotence": True}), "exact", "one") is None


def test_a_group_needs_the_group_too(node: Secured, admin: AdminClient) -> None:
    create(admin, "grouped")
    add_user(admin, "member", PASSWORD)
    allow(admin, acl(ResourceType.TOPIC, "grouped", "member", AclOperation.READ))
    assert send(Producer(settings(node, "admin")), "grouped", "one") is None
    config = settings(node, "member") | {"group.id": "members", "auto.offset.reset": "earliest"}
    consumer = Consumer(config)
    consumer.subscribe(["grouped"])
    message = consumer.poll(15)
    assert message is not None
    assert message.error().code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    consumer.close()
    allow(admin, acl(ResourceType.GROUP, "members", "member", AclOperation.READ))
    consumer = Consumer(config)
    consumer.subscribe(["grouped"])
    message = consumer.poll(20)
    assert message is not None
    assert message.value() == b"one"
    consumer.commit(message)
    consumer.close()


def test_a_right_that_is_taken_back_ends_with_the_next_message(node: Secured, admin: AdminClient) -> None:
    """The short ways, too: the same producer and the same consumer, that go on as before."""
    create(admin, "taken")
    add_user(admin, "both", PASSWORD)
    rights = [
        acl(ResourceType.TOPIC, "taken", "both", AclOperation.WRITE),
        acl(ResourceType.TOPIC, "taken", "both", AclOperation.READ),
    ]
    allow(admin, *rights)
    producer = Producer(settings(node, "both") | {"linger.ms": 0})
    for number in range(50):
        assert send(producer, "taken", str(number)) is None
    consumer = Consumer(settings(node, "both") | {"group.id": "g", "fetch.wait.max.ms": 5000})
    assert receive(consumer, "taken").value() == b"0"
    while (message := consumer.poll(1)) is not None:
        assert message.error() is None
    filters = [
        AclBindingFilter(
            each.restype, each.name, each.resource_pattern_type, each.principal, each.host, each.operation,
            each.permission_type,
        )
        for each in rights
    ]  # fmt: skip
    for deleted in admin.delete_acls(filters).values():
        assert len(deleted.result(10)) == 1
    assert send(producer, "taken", "more").code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert send(Producer(settings(node, "admin")), "taken", "secret") is None  # wakes the one who waits
    message = consumer.poll(6)  # longer than a fetch waits
    assert message is None or message.error() is not None
    consumer.close()


def test_topics_that_one_may_not_see_are_not_there(node: Secured, admin: AdminClient) -> None:
    create(admin, "seen")
    create(admin, "unseen")
    add_user(admin, "looker", PASSWORD)
    allow(admin, acl(ResourceType.TOPIC, "seen", "looker", AclOperation.DESCRIBE))
    assert list(AdminClient(settings(node, "looker")).list_topics(timeout=10).topics) == ["seen"]


def test_a_wrong_password_is_told_to_the_client(node: Secured) -> None:
    errors: list[Any] = []
    config = settings(node, "admin", "wrong") | {"error_cb": errors.append}
    producer = Producer(config)
    until(lambda: producer.poll(0.1) is not None and errors, "the client says so")
    assert KafkaError._AUTHENTICATION in [error.code() for error in errors]


def test_acls_are_described_as_they_were_created(admin: AdminClient) -> None:
    rules = [
        acl(ResourceType.TOPIC, "books", "ann", AclOperation.WRITE),
        acl(ResourceType.TOPIC, "books", "bob", AclOperation.ALL, AclPermissionType.DENY),
        AclBinding(
            ResourceType.GROUP, "b", ResourcePatternType.PREFIXED, "User:ann", "10.0.0.1", AclOperation.READ,
            AclPermissionType.ALLOW,
        ),
    ]  # fmt: skip
    allow(admin, *rules)
    every = [
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        "User:ann",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    ]
    found = admin.describe_acls(AclBindingFilter(*every)).result(10)
    assert set(found) == {rules[0], rules[2]}
    matching = [ResourceType.TOPIC, "books", ResourcePatternType.MATCH, *[None] * 2, AclOperation.ANY]
    found = admin.describe_acls(AclBindingFilter(*matching, AclPermissionType.ANY)).result(10)
    assert set(found) == set(rules[:2])


def test_acls_that_can_never_hold_are_refused(admin: AdminClient) -> None:
    wrong = acl(ResourceType.GROUP, "g", "ann", AclOperation.WRITE)
    with pytest.raises(KafkaException, match="can't be done"):
        admin.create_acls([wrong])[wrong].result(10)


def test_users_are_described_changed_and_deleted(node: Secured, admin: AdminClient) -> None:
    add_user(admin, "carl", "first", ScramMechanism.SCRAM_SHA_512)
    found = admin.describe_user_scram_credentials(["carl"])["carl"].result(10)
    assert [(info.mechanism, info.iterations) for info in found.scram_credential_infos] == [
        (ScramMechanism.SCRAM_SHA_512, 4096)
    ]
    config = settings(node, "carl", "first", "SCRAM-SHA-512")
    assert AdminClient(config).list_topics(timeout=10).brokers
    deletion = UserScramCredentialDeletion("carl", ScramMechanism.SCRAM_SHA_512)
    admin.alter_user_scram_credentials([deletion])["carl"].result(10)
    with pytest.raises(KafkaException):
        AdminClient(config).list_topics(timeout=2)
    with pytest.raises(KafkaException, match="no user"):
        admin.describe_user_scram_credentials(["carl"])["carl"].result(10)


def test_administration_is_for_those_who_may(node: Secured, admin: AdminClient) -> None:
    add_user(admin, "guest", PASSWORD)
    guest = AdminClient(settings(node, "guest"))
    rule = acl(ResourceType.TOPIC, "books", "guest", AclOperation.ALL)
    with pytest.raises(KafkaException) as denied:
        guest.create_acls([rule])[rule].result(10)
    assert denied.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    change = UserScramCredentialUpsertion("admin", info, b"mine")
    with pytest.raises(KafkaException) as denied:
        guest.alter_user_scram_credentials([change])["admin"].result(10)
    assert denied.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    with pytest.raises(KafkaException) as denied:
        guest.create_topics([NewTopic("mine", 1, 1)])["mine"].result(10)
    assert denied.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    with pytest.raises(KafkaException) as denied:
        guest.describe_configs([resource])[resource].result(10)
    assert denied.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_logs_in_too(node: Secured, admin: AdminClient, mechanism: str) -> None:
    topic = f"python-{mechanism.lower()}"
    create(admin, topic)
    config = {
        "bootstrap_servers": node.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "admin",
        "sasl_plain_password": PASSWORD,
    }
    producer = KafkaProducer(**config)
    producer.send(topic, b"one").get(timeout=10)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=15_000, **config)
    assert next(consumer).value == b"one"
    consumer.close()
    client = KafkaAdminClient(**config)
    assert topic in client.list_topics()
    client.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka_logs_in_too(node: Secured, admin: AdminClient, mechanism: str) -> None:
    topic = f"aio-{mechanism.lower()}"
    create(admin, topic)
    config = {
        "bootstrap_servers": node.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "admin",
        "sasl_plain_password": PASSWORD,
    }
    async with AIOKafkaProducer(**config) as producer:
        await producer.send_and_wait(topic, b"one")
    async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **config) as consumer:
        message = await asyncio.wait_for(consumer.getone(), 15)
    assert message.value == b"one"


def test_librdkafka_logs_in_again_before_its_session_ends(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("sessions")
    with secured_node(home, security_session_ms="1500ms") as short:
        admin = AdminClient(settings(short, "admin"))
        create(admin, "long")
        errors: list[Any] = []
        producer = Producer(settings(short, "admin") | {"error_cb": errors.append})
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            assert send(producer, "long", "still here") is None
        assert errors == []
        accepted = short.node.listener.accepted
        assert send(producer, "long", "on the same connection") is None
        assert short.node.listener.accepted == accepted


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A node whose sessions end after a second."""
    with secured_node(tmp_path_factory.mktemp("brief"), security_session_ms="1s") as running:
        create(AdminClient(settings(running, "admin")), "brief")
        yield running


def python_settings(node: Secured) -> dict[str, Any]:
    return {
        "bootstrap_servers": node.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "admin",
        "sasl_plain_password": PASSWORD,
    }


def test_kafka_python_goes_on_over_the_end_of_its_sessions(brief: Secured) -> None:
    producer = KafkaProducer(**python_settings(brief), retries=10)
    deadline, count = time.monotonic() + 2.5, 0
    while time.monotonic() < deadline:
        producer.send("brief", b"by kafka-python").get(timeout=15)
        count += 1
    producer.close()
    assert count > 3


async def test_aiokafka_goes_on_over_the_end_of_its_sessions(brief: Secured) -> None:
    async with AIOKafkaProducer(**python_settings(brief)) as producer:
        deadline, count = time.monotonic() + 2.5, 0
        while time.monotonic() < deadline:
            await producer.send_and_wait("brief", b"by aiokafka")
            count += 1
    assert count > 3


def test_javas_client_logs_in_again_before_its_session_ends(brief: Secured, tmp_path: Path) -> None:
    properties = {
        "bootstrap.servers": brief.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{SCRAM} required username="admin" password="{PASSWORD}";',
        "acks": "all",
        "retries": "0",
    }
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    path = java_client.classpath(tmp_path, "SecuredClient")
    command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path, "SecuredClient", str(file)]
    sending = [*command, "send", "brief", "by Java", "3"]  # three sessions
    done = subprocess.run(sending, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 3


async def test_our_own_client_logs_in_again_before_its_session_ends(brief: Secured) -> None:
    async with Client(brief.bootstrap, credentials=Credentials("admin", PASSWORD)) as client:
        await client.nodes()
        accepted = brief.node.listener.accepted
        deadline = time.monotonic() + 2.5
        while time.monotonic() < deadline:
            assert await client.nodes() == [1]
            await asyncio.sleep(0.05)
        assert brief.node.listener.accepted == accepted, "it goes on over the same connection"


# --- tokens of an identity provider


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A node whose sessions end after a second, so that clients have to come with new tokens."""
    home = tmp_path_factory.mktemp("trusting")
    (home / "jwks.json").write_bytes(identity_provider.jwks(identity_provider.rsa_key("first")))
    believed = identity_provider.settings(home / "jwks.json")
    with secured_node(
        home / "data", security_plain_on_loopback="true", security_session_ms="1s", **believed
    ) as running:
        made = AdminClient(settings(running, "admin"))
        create(made, "by-token")
        allow(
            made,
            acl(ResourceType.TOPIC, "by-token", "jo", AclOperation.WRITE),
            acl(ResourceType.TOPIC, "by-token", "jo", AclOperation.READ),
            acl(ResourceType.GROUP, "g", "jo", AclOperation.READ),
        )
        yield running


def token_of(user: str) -> str:
    return identity_provider.token(identity_provider.rsa_key("first"), says=identity_provider.claims(user))


def by_token(node: Secured, user: str) -> Any:
    return {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (token_of(user), time.time() + 600),
    }


def test_confluent_comes_with_tokens_again_and_again(trusting: Secured) -> None:
    errors: list[Any] = []
    producer = Producer(by_token(trusting, "jo") | {"error_cb": errors.append})
    deadline = time.monotonic() + 2.5  # two sessions
    while time.monotonic() < deadline:
        assert send(producer, "by-token", "one") is None
    assert KafkaError._AUTHENTICATION not in [error.code() for error in errors]
    assert send(Producer(by_token(trusting, "ann")), "by-token", "two").code() == (
        KafkaError.TOPIC_AUTHORIZATION_FAILED
    )
    consumer = Consumer(by_token(trusting, "jo") | {"group.id": "g"})
    assert receive(consumer, "by-token").value() == b"one"
    consumer.close()


class AioTokens(AbstractTokenProvider):
    async def token(self) -> str:
        return token_of("jo")


async def test_aiokafka_comes_with_a_token(trusting: Secured) -> None:
    config = {
        "bootstrap_servers": trusting.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": AioTokens(),
    }
    async with AIOKafkaProducer(**config) as producer:
        sent = await producer.send_and_wait("by-token", b"by aiokafka")
    async with AIOKafkaConsumer(**config) as consumer:
        place = AioTopicPartition("by-token", 0)
        consumer.assign([place])
        consumer.seek(place, sent.offset)
        message = await asyncio.wait_for(consumer.getone(), 15)
    assert message.value == b"by aiokafka"


class PythonTokens(KafkaTokenProvider):
    def token(self) -> str:
        return token_of("jo")


def test_kafka_python_comes_with_a_token(trusting: Secured) -> None:
    producer = KafkaProducer(
        bootstrap_servers=trusting.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=PythonTokens(),
    )
    assert producer.send("by-token", b"by kafka-python").get(timeout=10).offset >= 0
    producer.close()
