"""What a server shows: read again when its files change, and kept as it was where the new ones are wrong."""

from __future__ import annotations

import ssl
from pathlib import Path

from postroad.errors import ConfigurationError
from postroad.system.certificates import DAY_S, ServerFiles, expiry_s, server_context


class ServerCertificates:
    """`context` is for the next handshake; connections that are there keep theirs."""

    context: ssl.SSLContext

    def __init__(self, files: ServerFiles, now_s: float) -> None:
        """ConfigurationError says which file is wrong."""
        self._files = files
        self.failure = ""  # why the files of now are not in use
        self._load(now_s)

    def days_left(self, now_s: float) -> float:
        """How long the certificate in use is valid; below zero once it has expired."""
        return (self.expiry_s - now_s) / DAY_S

    def reload(self, now_s: float, is_forced: bool = False) -> bool:
        """Read the files if they have changed; True if what they hold is in use from now on.

        Files are written one after the other: a pair that does not fit yet is looked at again next time.
        """
        changed_at = self._files.changed_at()
        if changed_at == self._read_at and not self.failure and not is_forced:
            return False
        try:
            self._load(now_s)
        except ConfigurationError as error:
            self.failure = str(error)
            return False
        self.failure = ""
        return True

    def _load(self, now_s: float) -> None:
        read_at = self._files.changed_at()
        self.context = server_context(self._files, now_s)
        self.expiry_s = expiry_s(self._files.certificate)
        self._read_at: dict[Path, float] = read_at
