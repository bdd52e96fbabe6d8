"""The node's certificates: what its listeners show, whom they believe, and who comes with one."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from postroad.config import Settings
from postroad.config.listeners import CERTIFICATE, Listener
from postroad.security.mapping_rules import MappingRules, subject_text
from postroad.security.principals import ANONYMOUS, Principal, user
from postroad.system.certificates import ClientFiles, ServerFiles, date_text
from postroad.system.clock import Clock
from postroad.system.server_certificates import ServerCertificates
from postroad.system.stream import Connect
from postroad.system.tls_connect import TlsConnector
from postroad.system.tls_stream import TlsStream

LOOK_S: Final = 10.0  # how often files are looked at; SIGHUP does it at once
WARN_DAYS: Final = 14
SECOND_MS: Final = 1000

log = logging.getLogger(__name__)


class Certificates:
    """One context for each way of asking clients for a certificate."""

    def __init__(self, settings: Settings, clock: Clock, connect: Connect) -> None:
        """ConfigurationError says which file is wrong."""
        tls = settings.tls
        self._clock = clock
        self._rules = MappingRules.parse(tls.principal_rules)
        ca = Path(tls.ca) if tls.ca else None
        pair = Path(tls.certificate), Path(tls.key)
        demanded = {listener.authentication == CERTIFICATE for listener in settings.kafka.every_listener}
        self._by_demand = {
            required: ServerCertificates(ServerFiles(*pair, ca, required), self._now_s())
            for required in sorted(demanded)
        }
        own = ClientFiles(ca, *pair, verify_hostname=tls.verify_hostname)
        self.connect = TlsConnector(connect, own).connect  # as a runtime's, to nodes with TLS
        self._warned = False

    def of(self, listener: Listener) -> ServerCertificates:
        return self._by_demand[listener.authentication == CERTIFICATE]

    def principal(self, listener: Listener, stream: TlsStream) -> Principal | str:
        """Who has come; or why he must not, as the log says it."""
        certificate = stream.tls.getpeercert()
        if not certificate:
            return ANONYMOUS
        subject = subject_text(certificate.get("subject", ()))  # type: ignore[arg-type]
        name = self._rules.name(subject)
        if name is not None:
            return user(name)
        if listener.authentication == CERTIFICATE:
            return f"no rule of tls.principal_rules makes a user of {subject!r}"
        return ANONYMOUS

    def days_left(self) -> float:
        return min(each.days_left(self._now_s()) for each in self._by_demand.values())

    @property
    def failures(self) -> list[str]:
        """Why the files of now are not in use; none if they are."""
        return [each.failure for each in self._by_demand.values() if each.failure]

    def reload(self, is_forced: bool = False) -> None:
        """What is wrong is said once; connections go on with what was there before."""
        for each in self._by_demand.values():
            before = each.failure
            if each.reload(self._now_s(), is_forced):
                log.info("the certificate was read again; it is valid until %s", date_text(each.expiry_s))
            elif each.failure and (each.failure != before or is_forced):
                log.error("the certificate in use is kept: %s", each.failure)
        self._warn_of_end()

    async def keep_current(self) -> None:
        """For as long as the node lives."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.reload()

    def _warn_of_end(self) -> None:
        is_near = self.days_left() < WARN_DAYS
        if is_near and not self._warned:
            log.warning("the certificate is valid for %.1f more days only", self.days_left())
        self._warned = is_near

    def _now_s(self) -> float:
        return self._clock.now_ms() / SECOND_MS
