"""How lines of the log look: as text, or as JSON, one object a line and nothing else on it.

    {"time": "2026-01-31T12:00:00.123Z", "level": "INFO", "logger": "postroad", "message": "…"}

Where several nodes write into one log, `source` says which: "node 2 " before the logger, or a field `source`.
A traceback is the field `traceback` of its line. A record may bring fields of its own (`FIELDS`, as those of
the access log do); they stand beside the first three, in place of a message.

Whatever a record holds, its line can be parsed: a message whose arguments don't fit it is shown with them,
and as text what JSON has no form for. A line has at most 4,096 bytes, which a pipe takes as one piece, so
lines of several processes don't mix; a longer text goes on in further lines, numbered by the field `part`.
`catch_everything` makes records of what else Python writes to standard error: warnings of libraries, and
exceptions that nobody caught.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from typing import Any, Final

STDERR: Final = 2
LINE_BYTES_MAX: Final = 4096  # PIPE_BUF: written whole or not yet
OTHERS_MAX: Final = 200  # characters of each other field of a line that is cut
ROOM_MIN: Final = 1000

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
        line |= getattr(record, FIELDS, None) or {"message": _message(record)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return "\n".join(_pieces(line))


def _pieces(line: dict[str, Any]) -> list[str]:
    """The line, or several where it is too long: then its longest text is cut."""
    whole = _dumps(line)
    texts = {key: value for key, value in line.items() if isinstance(value, str)}
    if len(whole) < LINE_BYTES_MAX or not texts:
        return [whole]
    longest = max(texts, key=lambda key: len(texts[key]))
    others = {key: str(value)[:OTHERS_MAX] for key, value in line.items() if key != longest}
    room = LINE_BYTES_MAX - len(_dumps({**others, longest: "", "part": 100_000})) - 1
    if room < ROOM_MIN:  # a hundred long fields, say
        others, room = {}, LINE_BYTES_MAX - len(longest) - OTHERS_MAX
    parts = _cut(texts[longest], room)
    return [_dumps({**others, longest: part, "part": number}) for number, part in enumerate(parts, 1)]


def _cut(text: str, room: int) -> list[str]:
    """The text in parts, each of which has at most so many bytes as JSON."""
    parts, at = [], 0
    while at < len(text):
        size = room
        while len(json.dumps(text[at : at + size])) - 2 > room:
            size //= 2
        parts.append(text[at : at + size])
        at += size
    return parts


def _dumps(line: dict[str, Any]) -> str:
    try:
        return json.dumps(line, default=str, allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # a key that is none, NaN, an object within itself
        return json.dumps({str(key): repr(value) for key, value in line.items()})


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # whoever wrote it has a defect; what was to be said is still worth its line
        return f"{record.msg} {record.args!r}"


class WholeLines(logging.Handler):
    """Writes each line to standard error with one call, so that lines of several processes don't mix."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            for line in self.format(record).split("\n"):
                os.write(STDERR, f"{line}\n".encode("ascii", "backslashreplace"))
        except OSError:  # there is nowhere left to say so
            return


def catch_everything(log: logging.Logger) -> None:
    """Warnings of libraries, and exceptions that nobody caught, become records."""
    logging.captureWarnings(True)

    def uncaught(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
        log.critical("ended by an exception", exc_info=(kind, error, traceback))

    def in_thread(found: threading.ExceptHookArgs) -> None:
        if found.exc_value is not None:
            name = "" if found.thread is None else found.thread.name
            info = (found.exc_type, found.exc_value, found.exc_traceback)
            log.error("the thread %s ended by an exception", name, exc_info=info)

    def unraisable(found: Any) -> None:
        error = found.exc_value
        info = None if error is None else (type(error), error, found.exc_traceback)
        log.error("%s: %r", found.err_msg or "an exception was ignored", found.object, exc_info=info)

    sys.excepthook, threading.excepthook, sys.unraisablehook = uncaught, in_thread, unraisable


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
