"""How lines of the log look: as text, or as JSON, one object a line and nothing else on it.

    {"time": "2026-01-31T12:00:00.123Z", "level": "INFO", "logger": "postroad", "message": "…"}

Where several nodes write into one log, `source` says which: "node 2 " before the logger, or a field `source`.
A traceback is the field `traceback` of its line. A record may bring fields of its own (`FIELDS`, as those of
the access log do); they stand beside the first three, in place of a message.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

FIELDS: Final = "fields"  # of a record: a dict, for whoever writes objects
TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
TEXT_OF: Final = "%(asctime)s %(levelname)s {source} %(name)s: %(message)s"


class JsonLines(logging.Formatter):
    """Each record as one JSON object."""

    def __init__(self, source: str = "") -> None:
        super().__init__()
        self._source = {"source": source} if source else {}

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname,
            **self._source,
            "logger": record.name,
        }
        line |= getattr(record, FIELDS, None) or {"message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps(line, default=str)


class MixedLines(logging.Formatter):
    """Text; but JSON for the records of one logger."""

    def __init__(self, json_logger: str) -> None:
        super().__init__(TEXT)
        self._json_logger = json_logger
        self._json = JsonLines()

    def format(self, record: logging.LogRecord) -> str:
        return self._json.format(record) if record.name == self._json_logger else super().format(record)


def formatter(form: str, json_logger: str = "", source: str = "") -> logging.Formatter:
    """`form` is `text` or `json`; `json_logger` writes JSON whatever it is; `source` names who writes."""
    if form == "json":
        return JsonLines(source)
    if json_logger:
        return MixedLines(json_logger)
    return logging.Formatter(TEXT_OF.format(source=source) if source else TEXT)
