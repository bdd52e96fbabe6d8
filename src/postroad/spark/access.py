"""How drivers and executors are let in: TLS and a login, from a bootstrap address or from options.

Options are those of Kafka's clients, as Spark's Kafka connector takes them:

    kafka.security.protocol        PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
    kafka.sasl.mechanism           SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN
    kafka.sasl.jaas.config         … required username="shop" password="…";
    kafka.ssl.truststore.location  CAs as PEM (kafka.ssl.truststore.type=PEM); without it those of the system
    kafka.ssl.keystore.location    a certificate and its key in one PEM file, where the node asks for one
    kafka.ssl.endpoint.identification.algorithm   empty: the CA is enough, whatever host it names

and `profile`, a file with all of it (`client/profile.py`). An Access can be pickled: CAs and password travel
with it, so an executor needs none of the driver's files but a certificate of its own.
"""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Final, NamedTuple

from postroad.client import bootstrap as bootstraps
from postroad.client.bootstrap import Bootstrap
from postroad.client.login import Credentials
from postroad.errors import ConfigurationError
from postroad.spark.option_values import Values
from postroad.system.certificates import LOWEST, ClientFiles, client_context

PROFILE: Final = "profile"
PROTOCOL: Final = "kafka.security.protocol"
MECHANISM: Final = "kafka.sasl.mechanism"
JAAS: Final = "kafka.sasl.jaas.config"
TRUST: Final = "kafka.ssl.truststore.location"
TRUST_TYPE: Final = "kafka.ssl.truststore.type"
TRUST_TEXT: Final = "kafka.ssl.truststore.certificates"
KEYSTORE: Final = "kafka.ssl.keystore.location"
KEYSTORE_TYPE: Final = "kafka.ssl.keystore.type"
HOST_CHECK: Final = "kafka.ssl.endpoint.identification.algorithm"
NAMES: Final = (
    *(PROFILE, PROTOCOL, MECHANISM, JAAS),
    *(TRUST, TRUST_TYPE, TRUST_TEXT, KEYSTORE, KEYSTORE_TYPE, HOST_CHECK),
)
PROTOCOLS: Final = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
MECHANISMS: Final = ("scram-sha-256", "scram-sha-512", "plain")

_JAAS: Final = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


class Access(NamedTuple):
    """Without TLS and a login: whoever connects is let in."""

    is_tls: bool = False
    ca: str = ""  # PEM; empty: the CAs of the system
    certificate: str = ""  # files of what is shown where the node asks for it
    key: str = ""
    checks_host: bool = True
    credentials: Credentials | None = None

    def context(self) -> ssl.SSLContext:
        """ConfigurationError says which file can't be used."""
        files = ClientFiles(
            None,
            Path(self.certificate) if self.certificate else None,
            Path(self.key) if self.key else None,
            self.checks_host,
        )
        if not self.ca:
            return client_context(files)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = LOWEST
        context.check_hostname = self.checks_host
        try:
            context.load_verify_locations(cadata=self.ca)
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"the CA or the certificate can't be used: {error}") from None
        return context


OPEN: Final = Access()


def of_bootstrap(found: Bootstrap) -> Access:
    """What the address itself says. ConfigurationError for a file that can't be read."""
    if found.tls is None:
        return Access(credentials=found.credentials)
    tls = found.tls
    return Access(
        True,
        _text_of(tls["ca"], "ca") if "ca" in tls else "",
        tls.get("certificate", ""),
        tls.get("key", ""),
        tls.get("verify") != "ca",
        found.credentials,
    )


def of_options(values: Values, bootstrap: str) -> Access | None:
    """What the options say; None: nothing, so the address counts. ConfigurationError names what is wrong."""
    given = values.given(*NAMES[1:])
    if not given:
        return None
    if bootstrap.startswith(bootstraps.TLS) or "?" in bootstrap:
        raise ConfigurationError(f"Option {given[0]}: the address or the profile says that already.")
    protocol = values.one_of(PROTOCOL, PROTOCOLS, PROTOCOLS[0])
    is_tls, logs_in = protocol.endswith("ssl"), protocol.startswith("sasl")
    for name in values.given(TRUST, TRUST_TYPE, TRUST_TEXT, KEYSTORE, KEYSTORE_TYPE, HOST_CHECK):
        if not is_tls:
            raise ConfigurationError(f"Option {name} is for {PROTOCOL}=SSL or SASL_SSL.")
    for name in values.given(MECHANISM, JAAS):
        if not logs_in:
            raise ConfigurationError(f"Option {name} is for {PROTOCOL}=SASL_SSL or SASL_PLAINTEXT.")
    keystore = values.text(KEYSTORE) or ""
    return Access(
        is_tls,
        _trusted(values),
        keystore,
        keystore,
        values.raw(HOST_CHECK) != "",
        _credentials(values) if logs_in else None,
    )


def _trusted(values: Values) -> str:
    for kind, store in ((TRUST_TYPE, TRUST), (KEYSTORE_TYPE, KEYSTORE)):
        if values.has(store) and values.one_of(kind, ("pem", "jks", "pkcs12"), "jks") != "pem":
            raise ConfigurationError(f"Option {store}: only PEM files can be read; set {kind}=PEM.")
    location, text = values.text(TRUST), values.text(TRUST_TEXT)
    if location and text:
        raise ConfigurationError(f"Options {TRUST} and {TRUST_TEXT}: one of them is enough.")
    return _text_of(location, f"Option {TRUST}") if location else text or ""


def _credentials(values: Values) -> Credentials:
    given = dict(_JAAS.findall(values.text(JAAS) or ""))
    if given.keys() != {"username", "password"}:
        raise ConfigurationError(
            f'Option {JAAS} must have username="…" and password="…" (it is not shown: it has a password).'
        )
    user, password = (re.sub(r"\\(.)", r"\1", given[name]) for name in ("username", "password"))
    mechanism = values.one_of(MECHANISM, MECHANISMS, MECHANISMS[0])
    return Credentials(user, password, mechanism.upper())


def _text_of(file: str, what: str) -> str:
    try:
        return Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no PEM file"
        raise ConfigurationError(f"{what}: {file} can't be read: {reason}.") from None
