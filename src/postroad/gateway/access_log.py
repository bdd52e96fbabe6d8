"""One line for a request, as `name=value` pairs or JSON; which requests get one is a setting.

    method=POST path=/ status=200 ms=1.4 dialect=sqs action=SendMessage bytes_in=48 …

Neither the query, nor a header, nor a body is ever written: they may hold keys and signatures.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Final, NamedTuple

from postroad.config.sections import Http
from postroad.log_lines import FIELDS

ACCESS: Final = "postroad.access"

log = logging.getLogger(ACCESS)

_PLAIN: Final = re.compile(r"[!#-<>-\[\]-~]+")  # printable ASCII, but for quotes, backslashes and `=`
PATH_CHARACTERS_MAX: Final = 500


class Line(NamedTuple):
    """The facts of one request."""

    method: str
    path: str
    status: int
    took_ns: int
    dialect: str
    action: str
    bytes_in: int
    bytes_out: int
    peer: str


class AccessLog:
    def __init__(self, http: Http) -> None:
        self._least_status = {"off": 1000, "errors": 500, "all": 0}[http.access_log]
        self._write = _as_json if http.access_log_format == "json" else _as_text

    def wants(self, status: int) -> bool:
        """Whether a request that ended so gets a line."""
        return status >= self._least_status

    def note(self, line: Line) -> None:
        facts: dict[str, str | int | float] = {
            "method": line.method,
            "path": line.path[:PATH_CHARACTERS_MAX],
            "status": line.status,
            "ms": round(line.took_ns / 1e6, 1),
            "dialect": line.dialect,
            "action": line.action,
            "bytes_in": line.bytes_in,
            "bytes_out": line.bytes_out,
            "peer": line.peer,
        }
        log.info("%s", self._write(facts), extra={FIELDS: facts})


def _as_text(facts: dict[str, str | int | float]) -> str:
    return " ".join(f"{name}={_quoted(value)}" for name, value in facts.items())


def _quoted(value: str | int | float) -> str:
    """A path may hold anything: a line break in it must not begin a line of its own."""
    if not isinstance(value, str) or _PLAIN.fullmatch(value):
        return str(value)
    return _as_json(value)


def _as_json(value: object) -> str:
    return json.dumps(value)
