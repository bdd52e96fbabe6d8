"""Where the cluster is and who logs in there, for calls of this process and for another one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from postroad.client.profile import KEYS, Profile, read_profile
from postroad.errors import ConfigurationError
from postroad.workers.client import BOOTSTRAP_VARIABLE, PROFILE_VARIABLE

if TYPE_CHECKING:
    from postroad.workers.blocking import SyncClient


@dataclass(frozen=True)
class Access:
    """What is not given is as for every client: POSTROAD_BOOTSTRAP, POSTROAD_PROFILE, 127.0.0.1:9092."""

    bootstrap: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    profile: str = ""

    def __post_init__(self) -> None:
        if bool(self.user) != bool(self.password):
            raise ConfigurationError("Give both user and password, or neither.")

    def client(self) -> SyncClient:
        from postroad.workers.blocking import SyncClient

        return SyncClient(
            self.bootstrap or None,
            user=self.user or None,
            password=self.password or None,
            profile=self.profile or None,
        )

    @contextmanager
    def environment(self) -> Iterator[dict[str, str]]:
        """The variables by which another process of this machine connects alike, while the block runs.

        A password is in a file that only this user can read, neither in a variable nor on a command line.
        """
        with TemporaryDirectory(prefix="postroad-") as directory:
            found = {}
            if self.bootstrap:
                found[BOOTSTRAP_VARIABLE] = self.bootstrap
            if self.user:
                found[PROFILE_VARIABLE] = str(self._write_profile(Path(directory)))
            elif self.profile:
                found[PROFILE_VARIABLE] = str(Path(self.profile).absolute())
            yield found

    def _write_profile(self, directory: Path) -> Path:
        """The profile that holds, with this user in it."""
        file = self.profile or os.environ.get(PROFILE_VARIABLE)
        profile = read_profile(Path(file)) if file else Profile()
        profile = replace(profile, user=self.user, password=self.password)
        lines = [
            f"{name} = {_quoted(value)}\n"
            for name, value in asdict(profile).items()
            if name in KEYS and value
        ]
        path = directory / "user.profile"
        path.touch(mode=0o600)
        path.write_text("".join(lines), encoding="utf-8")
        return path


def _quoted(text: str) -> str:
    """As a string of TOML."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return f"\\u{ord(character):04x}" if ord(character) < 0x20 or character == "\x7f" else character
