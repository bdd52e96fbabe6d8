"""Who a command is for the cluster: a user with a password, from options or a profile file.

Options come before the profile (`client/profile.py` has its form).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from postroad.client.profile import Profile, read_profile
from postroad.errors import ConfigurationError

NOBODY: Final = Profile()


def _read(path: Path, prefix: str) -> Profile:
    """click.BadParameter for one that can't be used; a warning for one that others can read."""
    try:
        found = read_profile(path)
    except ConfigurationError as error:
        raise click.BadParameter(str(error), param_hint=f"{prefix}profile") from None
    if found.is_exposed:
        click.echo(f"postroad: others can read the password in {path}: chmod 600 {path}", err=True)
    return found


def read_password(path: Path, prefix: str = "--") -> str:
    """The first line of the file."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise click.BadParameter(
            f"{path} can't be read: {reason}.", param_hint=f"{prefix}password-file"
        ) from None
    if not lines or not lines[0]:
        raise click.BadParameter(f"{path} is empty.", param_hint=f"{prefix}password-file")
    return lines[0]


def read_master_key(path: Path, prefix: str = "--") -> Profile:
    """Who holds the cluster's master key needs no other password."""
    from postroad.security.master_key import OPERATOR_USER, machine_password, read_key

    try:
        key = read_key(path.read_text())
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no master key"
        raise click.BadParameter(
            f"{path} can't be read: {reason}.", param_hint=f"{prefix}master-key"
        ) from None
    return Profile(user=OPERATOR_USER, password=machine_password(key, OPERATOR_USER))


def choose(
    profile: Path | None,
    user: str | None,
    password_file: Path | None,
    master_key: Path | None,
    prefix: str = "--",
) -> Profile:
    """What the options say, together."""
    found = NOBODY if profile is None else _read(profile, prefix)
    if master_key is not None:
        operator = read_master_key(master_key, prefix)
        found = replace(found, user=operator.user, password=operator.password, file="")
    if user is not None:
        found = replace(found, user=user, password="", file="")
    if password_file is not None:
        found = replace(found, password=read_password(password_file, prefix), file="")
    if found.user and not found.password:
        option = f"{prefix}password-file"
        raise click.UsageError(f"user {found.user!r} has no password: name its file with {option}")
    return found


def current() -> Profile:
    """Who the command that is running acts for."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_root().obj
    return found if isinstance(found, Profile) else NOBODY
