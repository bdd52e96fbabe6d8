"""What every process of ours needs: an event loop, a log, open files, a word that it is ready, an end.

And what the system says of the process: its limits, and what it uses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from postroad import log_lines

STDIN: Final = 0
JSON: Final = "json"  # of `logging.format`

log = logging.getLogger("postroad")


def event_loop() -> asyncio.Runner:
    """uvloop where it is installed, asyncio's own loop otherwise."""
    with contextlib.suppress(ImportError):
        import uvloop

        return asyncio.Runner(loop_factory=uvloop.new_event_loop)
    return asyncio.Runner()


def log_to_stderr(level: str, form: str, json_logger: str = "", source: str = "") -> None:
    """`form` is `text` or `json`; what `json_logger` says is JSON in either case.

    `source` names this process in each line, where others write to the same place.
    """
    handler = log_lines.WholeLines() if form == JSON else logging.StreamHandler()
    handler.setFormatter(log_lines.formatter(form, json_logger, source))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    if form == JSON:
        log_lines.catch_everything(log)


def _json_lines() -> log_lines.JsonLines | None:
    """How this process writes its log, if as JSON."""
    found = (handler.formatter for handler in logging.getLogger().handlers)
    return next((each for each in found if isinstance(each, log_lines.JsonLines)), None)


def complain(error: Exception) -> None:
    """Say on standard error why the process ends: a line of the log, where that is JSON."""
    if _json_lines() is not None:
        log.critical("%s", error)
    else:
        print(f"postroad: {error}", file=sys.stderr)


def raise_file_limit() -> None:
    """Partitions and connections hold files open; take all that we may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # a hard limit that the system itself does not allow
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_files_max() -> int | None:
    """How many files and sockets this process may have open; None: as many as it likes."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def open_files() -> int:
    """How many files and sockets it has open; 0 where the system does not tell."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def cpu_seconds() -> float:
    """Processor time that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident_bytes() -> int:
    """Memory that this process has in use; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * resource.getpagesize()


def told_to_stop() -> asyncio.Event:
    """Set when SIGTERM or SIGINT comes."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


def when_told_to_reload(call: Callable[[], object]) -> None:
    """Call back when SIGHUP comes."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, call)


def end_with_stdin(stopping: asyncio.Event) -> None:
    """Set the event when standard input ends, as it does with the process that holds its other end.

    Nothing is ever sent there, so what can be read is its end.
    """
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(STDIN, 1024):
            loop.remove_reader(STDIN)
            stopping.set()

    loop.add_reader(STDIN, look)


async def any_of(*events: asyncio.Event) -> None:
    """Returns when one of them is set."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()


def say(*lines: str) -> None:
    """Write to standard output; as JSON, if the log is.

    A server goes on where that is closed or full: its log says so.
    """
    if (form := _json_lines()) is not None:  # who collects both takes them for one log
        records = (
            logging.makeLogRecord({"msg": line, "levelname": "INFO", "name": log.name}) for line in lines
        )
        lines = tuple(form.format(record) for record in records if record.msg)
    try:
        print(*lines, sep="\n", flush=True)
    except OSError as error:
        log.warning("can't write to standard output: %s", error.strerror)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter tries again


def http_lines(scheme: str, address: str, *, console: bool) -> list[str]:
    """For `say`: where the gateway is; none without an address."""
    if not address:
        return []
    lines = [f"HTTP (SQS, REST, WebSocket): {scheme}://{address}"]
    return [*lines, f"Console, in a browser: {scheme}://{address}/console"] if console else lines


def warn_of_exposed(*secrets: str) -> None:
    """A line for each file that every user of the machine can read; empty names are passed over."""
    for path in filter(None, secrets):
        with contextlib.suppress(OSError):  # whoever needs it says so
            if os.stat(path).st_mode & stat.S_IROTH:
                log.warning("all users of this machine can read the secret in %s: chmod 600 %s", path, path)


def ready_http(scheme: str, address: str) -> dict[str, str]:
    """What a ready file says of a gateway; nothing if there is none."""
    return {"http": address, "url": f"{scheme}://{address}"} if address else {}


def write_ready_file(path: str, facts: dict[str, str]) -> None:
    """As JSON, with the process id; whoever sees the file sees all of it. Raises OSError."""
    temporary = Path(f"{path}.new")
    temporary.write_text(json.dumps({**facts, "pid": os.getpid()}))
    temporary.replace(path)
