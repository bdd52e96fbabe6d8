"""Listeners beside the first one, as they are written in a setting."""

from __future__ import annotations

import pytest

from postroad.config import Settings
from postroad.config.listeners import Listener, parse
from postroad.errors import ConfigurationError

TLS = {"tls_certificate": "node.pem", "tls_key": "node.key", "tls_ca": "ca.pem"}


def test_a_listener_is_read_with_its_options() -> None:
    text = "inside=plain://127.0.0.1:0, outside=tls://[::]:9093?advertised=kafka.example.com:19093&authentication=certificate"
    assert parse(text) == (
        Listener("inside", "127.0.0.1", 0),
        Listener("outside", "::", 9093, True, "kafka.example.com", 19093, "certificate"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "9093",
        "a=http://127.0.0.1:1",
        "a=tls://127.0.0.1",
        "a=tls://127.0.0.1:70000",
        "a=tls://127.0.0.1:1?advertised=x:0",
        "a=tls://127.0.0.1:1?authentication=perhaps",
        "a=tls://127.0.0.1:1,a=tls://127.0.0.1:2",
        "default=tls://127.0.0.1:1",
        "UPPER=tls://127.0.0.1:1",
    ],
)
def test_a_listener_that_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.listeners"):
        Settings.of(kafka_listeners=text)


def test_an_address_that_others_reach_needs_tls_and_certificates() -> None:
    outside = "outside=tls://0.0.0.0:9093?advertised=kafka.example.com:9093"
    with pytest.raises(ConfigurationError, match="others could connect"):
        Settings.of(kafka_listeners=outside, **TLS)
    Settings.of(kafka_listeners=f"{outside}&authentication=certificate", **TLS)
    Settings.of(kafka_listeners=outside, kafka_insecure=True, **TLS)


def test_every_address_is_not_advertised() -> None:
    with pytest.raises(ConfigurationError, match="advertised=HOST:PORT"):
        Settings.of(kafka_listeners="a=plain://0.0.0.0:1", kafka_insecure=True)


def test_tls_needs_its_files() -> None:
    with pytest.raises(ConfigurationError, match=r"set tls\.certificate and tls\.key"):
        Settings.of(kafka_tls=True)
    with pytest.raises(ConfigurationError, match=r"set tls\.ca"):
        Settings.of(kafka_tls=True, kafka_authentication="certificate", tls_certificate="a", tls_key="b")
    with pytest.raises(ConfigurationError, match="without TLS"):
        Settings.of(kafka_authentication="certificate")
