"""A node and its gateway as one starts them, users as `postroad user create` makes them, and their clients:
boto3, Celery, websockets, and what shows a certificate."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import boto3
import pytest
import websockets.sync.client
from botocore.config import Config
from click.testing import CliRunner

from postroad.cli import main
from postroad.client import Client, users
from postroad.client.login import Credentials
from postroad.errors import ClusterAuthorizationFailed
from postroad.security.master_key import GATEWAY_USER
from postroad.testing import Node, node
from tests.certificates import Authority, Pair
from tests.clients.wait import until
from tests.gateway.processes import alone, gateway_pid, url_of
from tests.gateway.security.asking import basic
from tests.gateway.sqs.conftest import connect, receive
from tests.gateway.test_celery import Tasks

TIMEOUT_S = 60


class Served:
    """A node with its gateway, and its users."""

    def __init__(self, running: Node) -> None:
        self.running = running
        self._key = running.data_dir / "master.key"

    @property
    def http(self) -> str:
        return self.running.http

    def command(self, *arguments: str) -> str:
        key = ["--master-key", str(self._key)]
        result = CliRunner().invoke(main, [*key, *arguments, "-b", self.running.bootstrap])
        assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
        return result.stdout

    def add_user(self, name: str) -> dict[str, str]:
        made: dict[str, str] = json.loads(self.command("user", "create", name, "--json"))
        return made


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Without access keys in its settings."""
    with node({"security.enabled": True, "http.enabled": True}) as running:
        yield Served(running)


@pytest.fixture(scope="module")
def worker(served: Served) -> dict[str, str]:
    """One who may send to and receive from the queues that are called `tasks…`, and make them."""
    made = served.add_user("worker")
    served.command("acl", "allow", "worker", "--queue", "tasks*")
    return made


def client_of(served: Served, user: dict[str, str]) -> Any:
    return connect(served.http, user["access_key_id"], user["secret_access_key"])


def test_boto3_with_what_user_create_prints(served: Served, worker: dict[str, str]) -> None:
    client = client_of(served, worker)

    def may_create() -> bool:
        try:
            client.create_queue(QueueName="tasks-boto3")
        except client.exceptions.ClientError:
            return False
        return True

    until(may_create, "the gateway has heard of the rules")
    queue = client.get_queue_url(QueueName="tasks-boto3")["QueueUrl"]
    client.send_message(QueueUrl=queue, MessageBody="a book")
    (message,) = receive(client, queue)
    client.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    assert client.list_queues()["QueueUrls"] == [queue]
    with pytest.raises(client.exceptions.ClientError):
        client.create_queue(QueueName="others")


def test_websockets_with_a_users_password(served: Served, worker: dict[str, str]) -> None:
    client = client_of(served, worker)
    queue = client.create_queue(QueueName="tasks-pushed")["QueueUrl"]
    client.send_message(QueueUrl=queue, MessageBody="pushed")
    where = f"ws{served.http.removeprefix('http')}/v1/subscriptions/tasks-pushed/stream?credit=1"
    headers = basic("worker", worker["password"])
    with websockets.sync.client.connect(where, additional_headers=headers, open_timeout=TIMEOUT_S) as socket:
        assert json.loads(socket.recv(TIMEOUT_S))["value"] == "pushed"


@pytest.mark.slow
def test_celery_with_a_users_key(served: Served, worker: dict[str, str], tmp_path: Path) -> None:
    login = f"{quote(worker['access_key_id'])}:{quote(worker['secret_access_key'])}"
    tasks = Tasks(f"http://{login}@{urlsplit(served.http).netloc}", "tasks-celery", tmp_path)
    wanted = [str(number) for number in range(5)]
    with tasks.worker():
        for argument in wanted:
            tasks.send("simple", argument)
        ran = tasks.wait_for("simple", len(wanted))
    assert sorted(run.argument for run in ran) == wanted


def test_metrics_with_a_users_password(served: Served, worker: dict[str, str]) -> None:
    request = Request(f"{served.http}/metrics", headers=basic("worker", worker["password"]))
    with pytest.raises(HTTPError) as refused:
        urlopen(request, timeout=TIMEOUT_S)
    assert refused.value.code == 403
    served.add_user("prometheus")
    scraper = json.loads(served.command("user", "create", "scraper", "--json"))
    served.command("acl", "allow", "scraper", "--cluster", "describe")
    request = Request(f"{served.http}/metrics", headers=basic("scraper", scraper["password"]))

    def is_shown() -> bool:
        try:
            return b"postroad_node_up" in urlopen(request, timeout=TIMEOUT_S).read()
        except HTTPError:
            return False

    until(is_shown, "the gateway has heard of the rule")


def test_the_gateway_beside_a_node_has_no_master_key(served: Served) -> None:
    environment = Path(f"/proc/{gateway_pid(served.running)}/environ").read_text()
    assert "gateway.key" in environment
    assert "master.key" not in environment
    assert (served.running.data_dir / "gateway.key").stat().st_mode & 0o777 == 0o600


def test_a_gateway_that_runs_by_itself_needs_the_gateways_key_only(
    served: Served, worker: dict[str, str], tmp_path: Path
) -> None:
    copy = tmp_path / "gateway.key"
    copy.write_bytes((served.running.data_dir / "gateway.key").read_bytes())
    settings = ["--set", "security.enabled=true", "--set", f"security.gateway_key_file={copy}"]
    with alone(tmp_path, "--bootstrap", served.running.bootstrap, *settings):
        url = url_of(tmp_path)
        queues = connect(url, worker["access_key_id"], worker["secret_access_key"]).list_queues()
    assert set(queues) <= {"QueueUrls", "ResponseMetadata"}


def test_whoever_breaks_into_a_gateway_makes_no_users(served: Served) -> None:
    password = (served.running.data_dir / "gateway.key").read_text().strip()
    bootstrap = served.running.bootstrap

    async def make_user() -> None:
        login = Credentials(GATEWAY_USER, password)
        async with Client(bootstrap, credentials=login) as client:
            await users.set_password(client, "intruder", "password")

    with pytest.raises(ClusterAuthorizationFailed):
        asyncio.run(make_user())


def test_no_secret_is_in_the_log(served: Served, worker: dict[str, str]) -> None:
    log = served.running.log_file.read_text(errors="replace")
    assert worker["password"] not in log
    assert worker["secret_access_key"] not in log


# --- certificates


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def certified(authority: Authority) -> Iterator[Served]:
    """A gateway that demands certificates, and makes users of their subjects."""
    pair = authority.issue("node")
    settings: dict[str, str | int | float | bool] = {
        "security.enabled": True,
        "http.enabled": True,
        "http.tls": True,
        "http.authentication": "certificate",
        "tls.certificate": str(pair.certificate),
        "tls.key": str(pair.key),
        "tls.ca": str(authority.ca),
        "tls.principal_rules": "RULE:^.*CN=([^,]+).*$/$1/",
    }
    with node(settings) as running:
        yield Served(running)


def get(
    served: Served, authority: Authority, pair: Pair | None, path: str, headers: dict[str, str] | None = None
) -> int:
    context = ssl.create_default_context(cafile=str(authority.ca))
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    connection = HTTPSConnection(urlsplit(served.http).netloc, timeout=TIMEOUT_S, context=context)
    try:
        connection.request("GET", path, headers=headers or {})
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_certificate_is_a_user(certified: Served, authority: Authority) -> None:
    shop = authority.issue("shop", "/O=Example/CN=shop")
    assert get(certified, authority, shop, "/v1/topics") == 200
    assert get(certified, authority, shop, "/v1/topics/orders") == 403
    certified.command("acl", "allow", "shop", "--topic", "orders", "--operation", "describe")
    until(lambda: get(certified, authority, shop, "/v1/topics/orders") == 404, "shop may describe it")
    assert (
        get(certified, authority, authority.issue("admin", "/O=Example/CN=admin"), "/metrics") == 200
    )  # a super user


def test_what_a_request_says_comes_before_its_certificate(certified: Served, authority: Authority) -> None:
    made = certified.add_user("clerk")
    shop = authority.issue("shop", "/O=Example/CN=shop")
    headers = basic("clerk", made["password"])
    assert get(certified, authority, shop, "/v1/topics/orders", headers) == 403
    assert get(certified, authority, shop, "/v1/topics/orders", basic("clerk", "wrong")) == 401


def test_without_a_certificate_nobody_comes_in(certified: Served, authority: Authority) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        get(certified, authority, None, "/healthz")


def test_an_unsigned_action_is_the_certificates(certified: Served, authority: Authority) -> None:
    shop = authority.issue("shop", "/O=Example/CN=shop")
    assert get(certified, authority, shop, "/?Action=ListQueues") == 200
    assert get(certified, authority, shop, "/?Action=GetQueueUrl&QueueName=none") == 400


def test_boto3_shows_a_certificate_and_signs(certified: Served, authority: Authority) -> None:
    """Who has signed it is who asks."""
    made = certified.add_user("carrier")
    certified.command("acl", "allow", "carrier", "--queue", "carried*")
    shop = authority.issue("shop", "/O=Example/CN=shop")
    client = boto3.client(
        "sqs", region_name="eu-west-1", endpoint_url=certified.http, verify=str(authority.ca),
        aws_access_key_id=made["access_key_id"], aws_secret_access_key=made["secret_access_key"],
        config=Config(client_cert=(str(shop.certificate), str(shop.key))),
    )  # fmt: skip

    def is_made() -> bool:
        try:
            client.create_queue(QueueName="carried")
        except client.exceptions.ClientError:
            return False
        return True

    until(is_made, "the gateway has heard of the rules")
