"""Clients that fetch their tokens themselves, from their provider's endpoint: librdkafka, kcat, Java's."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pyspark
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType

from tests.broker.secured import Secured, secured_node
from tests.clients import java_client
from tests.clients.test_secured import acl, allow, create, receive, send, settings
from tests.clients.wait import PATIENCE_S
from tests.identity_provider import SECRET, Published, published, rsa_key
from tests.identity_provider import settings as believing

TOPIC, USER = "by-token", "jo"
OAUTH = "org.apache.kafka.common.security.oauthbearer"
PRELOAD = "LD_PRELOAD"


@pytest.fixture(scope="module")
def provider() -> Iterator[Published]:
    with published(rsa_key("first")) as shown:
        yield shown


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, provider: Published) -> Iterator[Secured]:
    """A node that reads the provider's keys, and a user who may write and read one topic."""
    home = tmp_path_factory.mktemp("endpoints")
    with secured_node(home, security_plain_on_loopback="true", **believing(provider.url)) as running:
        admin = AdminClient(settings(running, "admin"))
        create(admin, TOPIC)
        for operation in (AclOperation.WRITE, AclOperation.READ):
            allow(admin, acl(ResourceType.TOPIC, TOPIC, USER, operation))
        allow(admin, acl(ResourceType.GROUP, "g", USER, AclOperation.READ))
        yield running


def fetching(node: Secured, provider: Published, secret: str = SECRET) -> dict[str, Any]:
    return {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": USER,
        "sasl.oauthbearer.client.secret": secret,
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
    }


def values(node: Secured, provider: Published, count: int) -> list[bytes]:
    """The newest messages of the topic, read by the user."""
    consumer = Consumer(fetching(node, provider) | {"group.id": "g"})
    found = [receive(consumer, TOPIC).value()]
    while (message := consumer.poll(1)) is not None:
        found.append(message.value())
    consumer.close()
    return found[-count:]


def test_librdkafka_fetches_its_token(node: Secured, provider: Published) -> None:
    before = len(provider.given)
    assert send(Producer(fetching(node, provider)), TOPIC, "by librdkafka") is None
    assert provider.given[before:] == [USER]
    assert values(node, provider, 1) == [b"by librdkafka"]


def kcat(*arguments: str, said: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    return subprocess.run(
        ["kcat", *arguments],
        input=said,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=os.environ | environment,
    )


def options(of: dict[str, Any]) -> list[str]:
    return [word for name, value in of.items() for word in ("-X", f"{name}={value}")]


def library() -> str:
    """confluent-kafka's own librdkafka, which can fetch tokens; Debian's, which kcat has, can not."""
    found = list(Path(confluent_kafka.__file__).parents[1].glob("confluent_kafka.libs/librdkafka-*.so*"))
    if not found:
        pytest.skip("this confluent-kafka brings no library of its own")
    return str(found[0])


def test_kcat_fetches_its_token(node: Secured, provider: Published) -> None:
    config = options(fetching(node, provider))
    done = kcat("-P", "-t", TOPIC, *config, said="by kcat\n", **{PRELOAD: library()})
    assert done.returncode == 0, done.stderr
    read = kcat("-C", "-q", "-e", "-o", "-1", "-t", TOPIC, *config, **{PRELOAD: library()})
    assert read.stdout == "by kcat\n", read.stderr


def test_tokens_that_nobody_signed_are_refused_whatever_they_say(node: Secured, provider: Published) -> None:
    """librdkafka makes such tokens itself (`alg: none`), for tests with servers that believe anybody."""
    unsigned = {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=admin",
    }
    done = kcat("-L", "-m", "2", *options(unsigned))
    assert done.returncode != 0
    assert "SASL authentication error" in done.stderr, done.stderr


def test_javas_client_fetches_its_token(node: Secured, provider: Published, tmp_path: Path) -> None:
    before = len(provider.given)
    properties = {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        # The default looks for a library that only servers need.
        "sasl.oauthbearer.jwt.validator.class": f"{OAUTH}.ClientJwtValidator",
        "sasl.jaas.config": (
            f'{OAUTH}.OAuthBearerLoginModule required clientId="{USER}" clientSecret="{SECRET}";'
        ),
    }
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    # Java's client reads tokens with Jackson, which it does not bring; Spark does.
    jackson = map(str, Path(pyspark.__file__).parent.glob("jars/jackson-*.jar"))
    path = ":".join([java_client.classpath(tmp_path, "SecuredClient"), *jackson])
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.token_url}"
    command = [
        "java",
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        allowed,
        "-cp",
        path,
        "SecuredClient",
        str(file),
    ]
    done = subprocess.run(
        [*command, "send", TOPIC, "by Java"], capture_output=True, text=True, timeout=PATIENCE_S * 2
    )
    assert done.returncode == 0, done.stderr
    assert provider.given[before:] == [USER]
    assert values(node, provider, 1) == [b"by Java"]


def test_a_client_without_the_secret_gets_no_token(node: Secured, provider: Published) -> None:
    before = len(provider.given)
    config = fetching(node, provider, "guessed") | {"message.timeout.ms": 2000}
    assert send(Producer(config), TOPIC, "by a guesser") is not None
    assert len(provider.given) == before
