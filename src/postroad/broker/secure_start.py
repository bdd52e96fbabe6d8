"""`postroad serve --secure`: the user `admin`, and the profile with which whoever started the node comes in.

    DATA/admin.profile, 0600, TOML:  bootstrap, http, ca, user, password

Order: certificates (`cli/secure.py`) → the nodes serve, with their master key → the user has the password →
the profile is written. The profile is the mark of a start that was completed. Until it is there nobody knows
the password, so the next start takes another one, and a kill in between costs nothing. Later starts write it
anew where addresses have changed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from postroad.broker.gateway_process import bootstrap_of
from postroad.config import Settings
from postroad.config.listeners import EVERY_ADDRESS
from postroad.errors import SaslAuthenticationFailed
from postroad.log.disk import OsDisk, read_file
from postroad.security.master_key import OPERATOR_USER, machine_password

ADMIN: Final = "admin"
PROFILE: Final = "admin.profile"
PROFILE_BYTES_MAX: Final = 64 * 1024
FOLLOW_S: Final = 30.0  # for all nodes to know the user; some milliseconds are usual
ASK_AGAIN_S: Final = 0.05


class SecureStart:
    """What is left to do once the nodes serve. `lines` is what the terminal is told."""

    def __init__(self, settings: Settings, ca: str, password: str, *, is_new: bool) -> None:
        """`ca` as the profile names it; `is_new`: user admin does not have the password yet."""
        self.profile = settings.data.dir.absolute() / PROFILE
        self._settings = settings
        self._ca = ca
        self._password = password
        self._is_new = is_new

    async def finish(self, at: Sequence[str], advertised: Sequence[str], http: str, master: bytes) -> None:
        """User and profile are there. `at`: where this machine reaches the nodes. Raises PostroadError."""
        if self._is_new:
            await self._make_admin(at, master)
        kafka, disk = self._settings.kafka, OsDisk()
        host, _, port = http.rpartition(":")
        if host.strip("[]") in EVERY_ADDRESS:
            http = f"{kafka.host_to_advertise}:{port}"
        content = _encode(
            bootstrap=f"tls://{','.join(advertised)}",
            http=f"{self._settings.http.scheme}://{http}" if http else "",
            ca=self._ca,
            user=ADMIN,
            password=self._password,
        )
        if self._is_new or read_file(disk, str(self.profile), PROFILE_BYTES_MAX) != content:
            disk.replace(str(self.profile), content)

    @property
    def lines(self) -> list[str]:
        told = f"User {ADMIN}, password: {self._password}  (shown this once; it is also in the profile)"
        return [
            *([told] if self._is_new else []),
            f"Try it:  export POSTROAD_PROFILE={self.profile}",
            "         postroad publish hello world",
            "         postroad consume hello --from-beginning",
        ]

    async def _make_admin(self, at: Sequence[str], master: bytes) -> None:
        from postroad.client import Client, users  # only the first start needs them
        from postroad.client.login import Credentials

        operator = Credentials(OPERATOR_USER, machine_password(master, OPERATOR_USER))
        async with Client(bootstrap_of(self._settings, ",".join(at)), credentials=operator) as client:
            await users.set_password(client, ADMIN, self._password)
        admin = Credentials(ADMIN, self._password)
        async with asyncio.timeout(FOLLOW_S):
            for address in at:
                while True:
                    try:
                        async with Client(bootstrap_of(self._settings, address), credentials=admin):
                            break
                    except SaslAuthenticationFailed:  # this node has not followed the store so far
                        await asyncio.sleep(ASK_AGAIN_S)


def _encode(**values: str) -> bytes:
    """JSON writes these texts as TOML does."""
    return "".join(
        f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items()
    ).encode()
