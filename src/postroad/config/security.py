"""The section of settings about who may do what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from postroad.config.access import OAUTHBEARER, mechanisms, principals
from postroad.config.declaration import Section, setting
from postroad.config.values import duration, switch, text

MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000


@dataclass(frozen=True, kw_only=True)
class Security(Section):
    """Who may do what. Off unless enabled; the same on every node of a cluster."""

    enabled: bool = setting(
        False,
        switch(),
        "Ask who a client is, and whether it may do what it asks for.",
    )
    super_users: str = setting(
        "User:admin",
        principals(),
        "Who may do everything, as User:name with commas between.",
        kafka="super.users",
    )
    open_without_rules: bool = setting(
        False,
        switch(),
        "What no ACL is about is open to everybody who has logged in.",
        kafka="allow.everyone.if.no.acl.found",
    )
    mechanisms: str = setting(
        "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN,OAUTHBEARER",
        mechanisms(),
        "The SASL mechanisms that are offered; PLAIN and OAUTHBEARER only over TLS, the latter with "
        "oauth_jwks.",
        kafka="sasl.enabled.mechanisms",
    )
    plain_on_loopback: bool = setting(
        False,
        switch(),
        "Offer PLAIN and OAUTHBEARER without TLS, too, to clients on this machine: their passwords and "
        "tokens can be read by its root.",
    )
    oauth_jwks: str = setting(
        "",
        text(),
        "The public keys of the provider whose tokens users may show (OAUTHBEARER, Bearer over HTTP): a JWKS "
        "as a file or an https URL, read again while the node runs. Empty: no tokens.",
        kafka="sasl.oauthbearer.jwks.endpoint.url",
    )
    oauth_issuer: str = setting(
        "", text(), "The provider, as its tokens name it (iss).", kafka="sasl.oauthbearer.expected.issuer"
    )
    oauth_audience: str = setting(
        "",
        text(),
        "For whom tokens must be meant (aud): others of the same provider are refused.",
        kafka="sasl.oauthbearer.expected.audience",
    )
    oauth_user_claim: str = setting(
        "sub", text(), "The claim that holds the user's name.", kafka="sasl.oauthbearer.sub.claim.name"
    )
    master_key_file: str = setting(
        "",
        text(),
        "The file with the cluster's master key, the same on every node; empty: master.key in the data "
        "directory, made at the first start.",
    )
    gateway_key_file: str = setting(
        "",
        text(),
        "For a gateway: the file with what it logs in to the nodes with. Nodes write it into their data "
        "directories: gateway.key.",
    )
    session_ms: int = setting(
        0,
        duration(0, 30 * DAY_MS),
        "After this time a client has to log in again on its connection; 0: never.",
        kafka="connections.max.reauth.ms",
    )
    login_ms: int = setting(
        5_000, duration(100, 5 * MINUTE_MS), "A connection must have logged in within this time."
    )

    @property
    def super_user_names(self) -> list[str]:
        return [name.strip() for name in self.super_users.split(",") if name.strip()]

    @property
    def offered(self) -> list[str]:
        return [name for name in self.mechanisms.split(",") if name != OAUTHBEARER or self.oauth_jwks]

    @property
    def takes_tokens(self) -> bool:
        return OAUTHBEARER in self.offered
