"""Names of queues: in URLs and ARNs, and which ones a new queue may have.

    URL  <base>/000000000000/<name>          ARN  arn:aws:sqs:<region>:000000000000:<name>

There are no accounts here, and a queue is the same in all regions: of URLs and ARNs that come in only the
name is looked at, so that clients may address the gateway by any host.
"""

from __future__ import annotations

from string import ascii_letters, digits
from typing import Final
from urllib.parse import quote, unquote

from postroad.gateway.sqs.errors import SqsError

ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"  # of those who don't say in which one they believe to be
FIFO_SUFFIX: Final = ".fifo"
NAME_CHARACTERS_MAX: Final = 80
GROUP_CHARACTERS_MAX: Final = 1024  # beyond any that a node takes; a longer one is not looked for

_NAME_CHARACTERS: Final = frozenset(ascii_letters + digits + "-_")


def url_of(base: str, name: str) -> str:
    return f"{base}/{ACCOUNT}/{quote(name, safe='')}"


def name_in_url(url: str) -> str:
    """Raises SqsError if there is none."""
    name = url.rpartition("/")[2]
    if "%" in name:
        name = unquote(name)
    if not 0 < len(name) <= GROUP_CHARACTERS_MAX:
        raise SqsError("InvalidAddress", f"The address {url[:200]} is not valid for this endpoint.")
    return name


def arn_of(region: str, name: str) -> str:
    return f"arn:aws:sqs:{region}:{ACCOUNT}:{name}"


def name_in_arn(arn: str) -> str | None:
    parts = arn.split(":", 5)
    if len(parts) != 6 or parts[0] != "arn" or parts[2] != "sqs" or not parts[5]:
        return None
    return parts[5]


def check(name: str) -> None:
    """Raises SqsError if a new queue can't be called so."""
    stem = name.removesuffix(FIFO_SUFFIX)
    if not stem or len(name) > NAME_CHARACTERS_MAX or not _NAME_CHARACTERS.issuperset(stem):
        raise SqsError(
            "InvalidParameterValueException",
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
        )


def is_fifo(name: str) -> bool:
    return name.endswith(FIFO_SUFFIX)
