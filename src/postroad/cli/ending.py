"""How `postroad` ends when it is a program of its own: as other Unix programs do.

The exit code is 0, 1 (could not be done) or 2 (called wrongly). A reader that has gone (`| head -1`) and
Ctrl-C end the process by their signal, without a word: a shell then sees 141 or 130, and stops its loop or
script too. Output that can't be written (a full disk, a closed standard output) is an error like any other.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

import click

PROGRAM: Final = "postroad"
COMPLETION_VARIABLE: Final = "_POSTROAD_COMPLETE"
FAILED: Final = 1
SIGNAL_BASE: Final = 128  # what shells add to the number of the signal that ended a process
_WRITE_ERRORS: Final = {errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT, errno.EPERM}


def run(command: click.Command, arguments: Sequence[str] | None = None) -> NoReturn:
    """Do what the arguments say, then end the process."""
    _open_standard_streams()
    try:
        code = _invoke(command, sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        _end_by(signal.SIGINT)
    except BrokenPipeError:
        _end_by(signal.SIGPIPE)
    except OSError as error:
        code = FAILED
        _drop_output()
        with contextlib.suppress(OSError):
            click.echo(f"{PROGRAM}: {_explain(error)}", err=True)
    sys.exit(code)


def _invoke(command: click.Command, arguments: Sequence[str]) -> int:
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(command, {}, PROGRAM, COMPLETION_VARIABLE, instruction)
    try:
        with command.make_context(PROGRAM, list(arguments)) as context:
            command.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0


def _explain(error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason}"
    return f"can't write to standard output: {reason}" if error.errno in _WRITE_ERRORS else reason


def _open_standard_streams() -> None:
    """A stream that the caller closed becomes one of the null device. Otherwise the next file or socket would
    get its number. Standard output can't be written then, and whoever writes there hears of it."""
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest free number, which is this one
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal's encoding lacks is shown by its number
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What could not be written would be tried once more, and fail, when the interpreter ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _end_by(number: signal.Signals) -> NoReturn:
    _drop_output()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(SIGNAL_BASE + number)  # the signal is blocked
