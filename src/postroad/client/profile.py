"""Where a cluster is and who one is there, in a file.

    bootstrap = "tls://kafka.example.com:9092"
    http = "https://kafka.example.com:8080"
    ca = "ca.pem"                # relative to the profile
    user = "shop"
    password = "…"

All of it may be left out, but a user has a password.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from postroad.errors import ConfigurationError

if TYPE_CHECKING:
    from postroad.client.login import Credentials

KEYS: Final = ("bootstrap", "http", "ca", "user", "password")
TLS: Final = "tls://"
OTHERS_READ: Final = 0o044  # its group, and everybody


@dataclass(frozen=True)
class Profile:
    bootstrap: str = ""
    http: str = ""
    ca: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    file: str = ""  # where all of it was read

    @property
    def credentials(self) -> Credentials | None:
        from postroad.client.login import Credentials

        return Credentials(self.user, self.password) if self.user else None

    def bootstrap_for(self, given: str) -> str:
        """The profile's own address where none was given, and its CA where the address names none."""
        found = given or self.bootstrap
        if found.startswith(TLS) and self.ca and "ca=" not in found:
            found += ("&" if "?" in found else "?") + f"ca={quote(self.ca)}"
        return found

    @property
    def is_exposed(self) -> bool:
        """Other users of the machine can read the password."""
        return bool(self.file and self.password and Path(self.file).stat().st_mode & OTHERS_READ)


def read_profile(path: Path) -> Profile:
    """ConfigurationError says what is wrong with the file, never what stands in it."""
    import tomllib  # a node does not need it

    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no TOML"
        raise ConfigurationError(f"{path} can't be read: {reason}.") from None
    wrong = [name for name, value in content.items() if name not in KEYS or not isinstance(value, str)]
    if wrong:
        raise ConfigurationError(f"{path}: {wrong[0]!r} is none of {', '.join(KEYS)} (texts).")
    profile = Profile(**content, file=str(path.absolute()))
    if profile.ca:
        profile = replace(profile, ca=str(path.absolute().parent / profile.ca))
    _check(path, profile)
    return profile


def _check(path: Path, profile: Profile) -> None:
    if profile.password and not profile.user:
        raise ConfigurationError(f"{path}: there is a password, but no user.")
    if profile.ca and not Path(profile.ca).is_file():
        raise ConfigurationError(f"{path}: ca: there is no file {profile.ca}.")
    if profile.http and not profile.http.startswith(("https://", "http://")):
        raise ConfigurationError(f"{path}: http must begin with https:// or http://.")
