"""The command `postroad` in a process of its own, whose last line of JSON is the result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

from postroad.errors import PostroadError

if TYPE_CHECKING:
    from postroad.schedulers.access import Access

STOPS_WITHIN_S: Final = 60.0  # a pipeline finishes its micro-batch first
LINES_IN_ERROR: Final = 20
OUR_OWN: Final = (sys.executable, "-m", "postroad")


class CommandFailed(PostroadError):
    """Says what the command said on standard error last."""


class Command:
    """`postroad` with these words, once. `program` is another installation's, such as one with Spark."""

    def __init__(
        self, words: Sequence[str], access: Access, program: str | Sequence[str] | None = None
    ) -> None:
        first = [program] if isinstance(program, str) else list(program or OUR_OWN)
        self._words = [*first, *words]
        self._access = access
        self._process: subprocess.Popen[str] | None = None
        self._is_stopped = False

    def run(self, tell: Callable[[str], None]) -> Any:
        """Tells each line that the command writes. The last one that is JSON is the result, or None.

        CommandFailed if it can't be started, or does not end with 0.
        """
        with self._access.environment() as variables:
            try:
                process = self._process = subprocess.Popen(
                    self._words,
                    env={**os.environ, **variables},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                )
            except OSError as error:
                raise CommandFailed(f"{self._words[0]} can't be run: {error.strerror}") from None
            try:
                return self._follow(process, tell)
            finally:
                self.stop()

    def stop(self) -> None:
        """Ends the command if it runs: gently, and by force if that takes too long. From any thread."""
        self._is_stopped = True
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _follow(self, process: subprocess.Popen[str], tell: Callable[[str], None]) -> Any:
        assert process.stdout is not None
        assert process.stderr is not None
        errors: deque[str] = deque(maxlen=LINES_IN_ERROR)
        beside = threading.Thread(target=_pass_on, args=(process.stderr, tell, errors), daemon=True)
        beside.start()
        results: deque[str] = deque(maxlen=1)
        _pass_on(process.stdout, tell, results)
        code = process.wait()
        beside.join()
        if self._is_stopped:
            raise CommandFailed("the command was stopped")
        if code != 0:
            raise CommandFailed("\n".join(errors) or f"the command ended with {code}")
        return _json(results)


def _pass_on(stream: IO[str], tell: Callable[[str], None], last: deque[str]) -> None:
    with stream:
        for line in stream:
            if text := line.rstrip():
                tell(text)
                last.append(text)


def _json(lines: deque[str]) -> Any:
    try:
        return json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
