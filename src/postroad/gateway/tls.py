"""TLS of the gateway's own port: aiohttp's server speaks it, with a context whose certificate is renewed.

A new certificate is loaded into the context that the server has: whoever connects from then on sees it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from pathlib import Path
from typing import Final

from postroad.config import Settings
from postroad.system.certificates import ServerFiles, date_text, server_context
from postroad.system.server_certificates import ServerCertificates

LOOK_S: Final = 10.0  # how often files are looked at; SIGHUP does it at once

log = logging.getLogger(__name__)


class GatewayTls:
    def __init__(self, settings: Settings) -> None:
        """ConfigurationError says which file is wrong."""
        demanded = settings.http.demands_certificates
        ca = Path(settings.tls.ca) if demanded else None
        self._files = ServerFiles(Path(settings.tls.certificate), Path(settings.tls.key), ca, demanded)
        self._certificates = ServerCertificates(self._files, time.time())
        self.context: ssl.SSLContext = server_context(self._files, time.time())

    def reload(self, is_forced: bool = False) -> None:
        """What is wrong is said once, and changes nothing."""
        before = self._certificates.failure
        if self._certificates.reload(time.time(), is_forced):
            self.context.load_cert_chain(self._files.certificate, self._files.key)
            if self._files.client_ca is not None:  # one more; to be rid of one takes a new gateway
                self.context.load_verify_locations(self._files.client_ca)
            until = date_text(self._certificates.expiry_s)
            log.info("the certificate was read again; it is valid until %s", until)
        elif self._certificates.failure and (self._certificates.failure != before or is_forced):
            log.error("the certificate in use is kept: %s", self._certificates.failure)

    async def keep_current(self) -> None:
        """For as long as the gateway lives."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.reload()
