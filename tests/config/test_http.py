"""Settings of the gateway: what is wrong with them is said when they are read, and secrets stay secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from postroad.config import Settings, describe, load
from postroad.config.access_keys import read_keys
from postroad.errors import ConfigurationError
from postroad.testing import node

Place = Callable[[str, str], Any]


def by_flag(name: str, value: str) -> Any:
    return load(environment={}, flags={name: value})


def by_environment(name: str, value: str) -> Any:
    return load(environment={f"POSTROAD_{name.replace('.', '_').upper()}": value})


def by_program(name: str, value: str) -> Any:
    return Settings.of(**{name.replace(".", "_"): value})


def test_keys_are_read_with_their_rights() -> None:
    reader, boss = read_keys("reader:one, boss:two:admin,")
    assert (reader.id, reader.secret, reader.admin) == ("reader", "one", False)
    assert (boss.id, boss.secret, boss.admin) == ("boss", "two", True)


@pytest.mark.parametrize("place", [by_flag, by_environment, by_program])
@pytest.mark.parametrize(
    "text", ["id", "id:", ":secret", "id:s:root", "id:s:admin:more", "id:s:", "id:a,id:b", "i d:s", "id:s\ts"]
)
def test_keys_that_cannot_be_read_are_refused_without_being_told(place: Place, text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"http\.access_keys") as refused:
        place("http.access_keys", text + ",x:topsecret")
    assert "topsecret" not in str(refused.value)


@pytest.mark.parametrize("keys", [",", " , ", ""])
def test_commas_alone_are_no_keys_and_open_no_address(keys: str) -> None:
    with pytest.raises(ConfigurationError, match="without a key"):
        Settings.of(http_host="0.0.0.0", http_access_keys=keys)


@pytest.mark.parametrize(
    "url", ["http://queues", "https://example.com:8443/queues/", "http://[::1]:8080", "HTTP://a-b.example"]
)
def test_a_base_url_may_have_a_port_and_a_path(url: str) -> None:
    assert Settings.of(http_url=url).http.url == url


@pytest.mark.parametrize(
    "url", ["queues:8080", "ftp://queues", "http://", "http://a b", "http://user@host", "https://host:port"]
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"http\.url"):
        Settings.of(http_url=url)


def test_host_names_have_commas_between() -> None:
    assert Settings.of(http_hosts="queues, Gateway.local,[::1]").http.hosts == "queues,Gateway.local,[::1]"
    assert Settings.of(http_hosts="*").http.hosts == "*"


@pytest.mark.parametrize("hosts", ["a,,b", "a:8080", "http://a", "a b", "ä", ","])
def test_what_is_no_host_name_is_refused(hosts: str) -> None:
    with pytest.raises(ConfigurationError, match=r"http\.hosts"):
        Settings.of(http_hosts=hosts)


def test_describe_configs_tells_no_secret() -> None:
    secrets = {"http.access_keys": "id:topsecret", "http.receipt_secret": "topsecret"}
    assert "topsecret" not in repr(describe(load(environment={}, flags=secrets)))
    with node({**secrets, "http.enabled": False}) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        (answer,) = admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "1")]).values()
        found = answer.result(60)
    assert found["postroad.http.access_keys"].is_sensitive
    assert found["postroad.http.access_keys"].value is None
    assert not found["postroad.http.url"].is_sensitive


def test_users_are_as_good_as_keys_where_others_can_connect() -> None:
    assert Settings.of(http_host="0.0.0.0", security_enabled=True).http.access_keys == ""


def test_a_gateway_asks_for_certificates_by_tls_only() -> None:
    files = {"tls_certificate": "a", "tls_key": "b", "tls_ca": "c"}
    demanded = {"http_authentication": "certificate"}
    assert Settings.of(http_host="0.0.0.0", http_tls=True, **demanded, **files).http.demands_certificates
    for missing in ({"http_tls": False}, {"tls_ca": ""}):
        with pytest.raises(ConfigurationError, match=r"http\.authentication"):
            Settings.of(**{**demanded, **files, "http_tls": True, **missing})
