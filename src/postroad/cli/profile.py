"""Who a command is for the cluster: a user with a password, from options or a profile file.

    bootstrap = "tls://kafka.example.com:9092"
    http = "https://kafka.example.com:8080"
    ca = "ca.pem"                # relative to the profile
    user = "shop"
    password = "…"

All of it may be left out. Options come before the profile.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import click

if TYPE_CHECKING:
    from postroad.client.login import Credentials

TLS: Final = "tls://"


@dataclass(frozen=True)
class Profile:
    bootstrap: str = ""
    http: str = ""
    ca: str = ""
    user: str = ""
    password: str = field(default="", repr=False)

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


NOBODY: Final = Profile()


def read_profile(path: Path) -> Profile:
    """click.BadParameter says what is wrong with the file, never what stands in it."""
    import tomllib  # a node does not need it

    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no TOML"
        raise click.BadParameter(f"{path} can't be read: {reason}.", param_hint="--profile") from None
    known = {each.name for each in fields(Profile)}
    wrong = [name for name, value in content.items() if name not in known or not isinstance(value, str)]
    if wrong:
        names = ", ".join(sorted(known))
        raise click.BadParameter(f"{path}: {wrong[0]!r} is none of {names} (texts).", param_hint="--profile")
    profile = Profile(**content)
    return replace(profile, ca=str(path.parent / profile.ca)) if profile.ca else profile


def read_password(path: Path) -> str:
    """The first line of the file."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise click.BadParameter(f"{path} can't be read: {reason}.", param_hint="--password-file") from None
    if not lines or not lines[0]:
        raise click.BadParameter(f"{path} is empty.", param_hint="--password-file")
    return lines[0]


def read_master_key(path: Path) -> Profile:
    """Who holds the cluster's master key needs no other password."""
    from postroad.security.master_key import OPERATOR_USER, machine_password, read_key

    try:
        key = read_key(path.read_text())
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no master key"
        raise click.BadParameter(f"{path} can't be read: {reason}.", param_hint="--master-key") from None
    return Profile(user=OPERATOR_USER, password=machine_password(key, OPERATOR_USER))


def choose(
    profile: Path | None, user: str | None, password_file: Path | None, master_key: Path | None
) -> Profile:
    """What the options say, together."""
    found = NOBODY if profile is None else read_profile(profile)
    if master_key is not None:
        operator = read_master_key(master_key)
        found = replace(found, user=operator.user, password=operator.password)
    if user is not None:
        found = replace(found, user=user, password="")
    if password_file is not None:
        found = replace(found, password=read_password(password_file))
    if found.user and not found.password:
        raise click.UsageError(f"user {found.user!r} has no password: name its file with --password-file")
    return found


def current() -> Profile:
    """Who the command that is running acts for."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_root().obj
    return found if isinstance(found, Profile) else NOBODY
