"""A Spark driver in a process of its own: a process has one Spark, and the tests' own runs on `local`.

The driver runs jobs by their names (`jobs`), one after the other, and answers over a pipe.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
PATIENCE_S = 480.0  # a job takes seconds; on a machine that is busy it may take many
ENDS_WITHIN_S = 20.0
LOG_TAIL_CHARS = 6000


class Driver:
    """Takes one job at a time. Its log is Spark's, warnings and worse."""

    def __init__(self, log: Path, config: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._log = log
        self._pipe, theirs = multiprocessing.Pipe()
        command = [sys.executable, "-m", "tests.spark.jobs", str(theirs.fileno()), json.dumps(dict(config))]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **environment_of_spark(), **environment},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        theirs.close()

    def do(self, job: str, **arguments: Any) -> Any:
        """What the job answers."""
        self.begin(job, **arguments)
        return self.result()

    def begin(self, job: str, **arguments: Any) -> None:
        self._pipe.send((job, arguments))

    def result(self) -> Any:
        """The result of the job. Fails, with the end of the log, if the job or the driver did."""
        try:
            assert self._pipe.poll(PATIENCE_S), f"the job is not done:\n{self._last_words()}"
            is_done, answer = self._pipe.recv()
        except EOFError:
            raise AssertionError(f"the driver has ended:\n{self._last_words()}") from None
        assert is_done, answer
        return answer

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def _last_words(self) -> str:
        return self.log()[-LOG_TAIL_CHARS:]


@contextmanager
def driver(
    home: Path, config: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> Iterator[Driver]:
    """Gone at the end of the block, with its JVM and its workers, whatever happens."""
    running = Driver(home / "driver.log", {**config, "spark.local.dir": str(home)}, environment or {})
    try:
        yield running
    finally:
        end(running.process)


def environment_of_spark() -> dict[str, str]:
    return {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def home_without_zip(home: Path) -> Path:
    """Spark's home but for the Python code in it, which is zipped: each of the many workers would compile it
    anew (a second). So they take what pip installed, which is the same and compiled."""
    import pyspark

    home.mkdir()
    for name in ("bin", "jars"):
        (home / name).symlink_to(Path(pyspark.__file__).with_name(name))
    return home


def end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, and SIGKILL to all that is left of its session: Spark's children have children."""
    with suppress(ProcessLookupError):
        process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(ENDS_WITHIN_S)
    deadline = time.monotonic() + ENDS_WITHIN_S
    while (left := members(process.pid)) and time.monotonic() < deadline:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)


def members(session: int) -> list[int]:
    """Processes of a session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(ValueError, OSError):
            # After the name, which may hold anything: state, parent, process group, session.
            state, _, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state != "Z":
                found.append(int(entry.name))
    return found
