"""The settings of the listeners: where Kafka clients connect."""

from __future__ import annotations

from dataclasses import dataclass

from postroad.config.declaration import Section, setting
from postroad.config.listeners import AUTHENTICATIONS, DEFAULT_NAME, Listener, is_loopback
from postroad.config.listeners import parse as parse_listeners
from postroad.config.values import choice, listeners, number, switch, text


@dataclass(frozen=True, kw_only=True)
class Kafka(Section):
    """Where Kafka clients connect."""

    host: str = setting("127.0.0.1", text(), "The address to listen on.")
    port: int = setting(9092, number(0, 65535), "The port to listen on; 0: any free one.")
    advertised_host: str = setting("", text(), "The host that clients are told to connect to; empty: host.")
    advertised_port: int = setting(
        0, number(0, 65535), "The port that clients are told to connect to; 0: the one that is listened on."
    )
    tls: bool = setting(False, switch(), "Speak TLS on that port, with the certificate of tls.certificate.")
    authentication: str = setting(
        "none",
        choice(*AUTHENTICATIONS),
        "What a client must show on that port; certificate: one that a CA of tls.ca has signed.",
    )
    listeners: str = setting(
        "",
        listeners(),
        "Further listeners with commas between, such as external=tls://0.0.0.0:9093"
        "?advertised=kafka.example.com:9093&authentication=certificate. Who comes by one is told of other "
        "nodes' listeners of its name.",
        kafka="listeners",
    )
    insecure: bool = setting(
        False,
        switch(),
        "Allow an address that others can reach, though there is no TLS and no authentication.",
    )
    short_ways: bool = setting(
        True,
        switch(),
        "Requests that repeat the one before are not decoded anew, which is faster and answers the same; "
        "off: to rule that out when looking for a fault.",
    )
    transactions: bool = setting(
        True,
        switch(),
        "Take transactional ids; off: producers that have one get an error. The same on every node.",
    )

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def host_to_advertise(self) -> str:
        return self.advertised_host or self.host

    @property
    def every_listener(self) -> tuple[Listener, ...]:
        """The first is the one of host and port, by which nodes reach each other."""
        first = Listener(
            *(DEFAULT_NAME, self.host, self.port, self.tls),
            *(self.advertised_host, self.advertised_port, self.authentication),
        )
        return (first, *parse_listeners(self.listeners))
