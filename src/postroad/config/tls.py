"""The settings of TLS: what this node shows, and whom it believes."""

from __future__ import annotations

from dataclasses import dataclass

from postroad.config.declaration import Section, setting
from postroad.config.values import mapping_rules, switch, text


@dataclass(frozen=True, kw_only=True)
class Tls(Section):
    """Certificates of listeners with TLS, in PEM files that are read again when they change, or on SIGHUP."""

    certificate: str = setting(
        "", text(), "The certificate, and behind it the chain up to its CA.", kafka="ssl.keystore.location"
    )
    key: str = setting("", text(), "The certificate's key, without a password.")
    ca: str = setting(
        "",
        text(),
        "The CAs of those who show a certificate here, and of the other nodes.",
        kafka="ssl.truststore.location",
    )
    verify_hostname: bool = setting(
        True,
        switch(),
        "Another node's certificate must name the host at which it is reached; off: its CA is enough.",
    )
    principal_rules: str = setting(
        "DEFAULT",
        mapping_rules(),
        "How the subject of a client's certificate becomes a user: RULE:pattern/replacement/[L|U] and "
        "DEFAULT (the whole subject), with commas between; the first that fits counts.",
        kafka="ssl.principal.mapping.rules",
    )
