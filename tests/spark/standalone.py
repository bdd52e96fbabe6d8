"""A Spark standalone cluster as people run it, on this machine: a master and workers, each a JVM of its own.

PySpark's wheel brings no start scripts for it but all that they start. A worker starts an executor (a JVM)
for each application, and that one the Python workers.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from tests.spark.driver import end, environment_of_spark

READY_WITHIN_S = 300.0  # some 3 s on a machine with nothing else to do
POLL_S = 0.05
WORKERS = 2
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
EXECUTOR = "CoarseGrainedExecutorBackend"

# One task at a time for each worker, so that every job with two tasks is on both.
CONFIG = {"spark.executor.cores": "1", "spark.executor.memory": "512m"}

T = TypeVar("T")

_LIBC = ctypes.CDLL(None)  # loaded here: nothing may be imported between fork and exec
_PR_SET_PDEATHSIG = 1


class Standalone:
    """`url` is what a driver names as its master."""

    def __init__(self, url: str, workers: list[subprocess.Popen[bytes]]) -> None:
        self.url = url
        self._workers = workers

    def executors(self) -> list[int]:
        """Processes that run tasks; a worker has had other children, too."""
        found = (child for worker in self._workers for child in children(worker.pid))
        return [child for child in found if EXECUTOR in Path(f"/proc/{child}/cmdline").read_text()]

    def kill_executor_of(self, process: int) -> None:
        """SIGKILL for the executor whose child, or child's child, that process is."""
        executors = self.executors()
        while process not in executors:
            assert process > 1, "it is a child of no executor"
            process = parent(process)
        os.kill(process, signal.SIGKILL)


@contextmanager
def standalone(home: Path) -> Iterator[Standalone]:
    """A cluster whose workers have registered. Nothing of it is left after the block."""
    with ExitStack() as stack:
        log = home / "master.log"
        address = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = start(stack, log, MASTER, *address)
        url = written(master, log, r"Starting Spark master at (spark://\S+)")
        workers = []
        for number in range(WORKERS):
            log = home / f"worker-{number}.log"
            work = home / f"worker-{number}"
            resources = ["--cores", "1", "--memory", "1g", "--work-dir", str(work)]
            worker = start(stack, log, WORKER, *address, *resources, url)
            written(worker, log, r"(Successfully registered with master)")
            workers.append(worker)
        yield Standalone(url, workers)


def start(stack: ExitStack, log: Path, *command: str) -> subprocess.Popen[bytes]:
    """A daemon of Spark's that ends with the stack."""
    import pyspark

    spark_home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        **environment_of_spark(),
        "SPARK_HOME": str(spark_home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(log.parent),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(spark_home / "bin" / "spark-class"), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    stack.callback(end, process)
    return process


def end_with_parent() -> None:
    """Between fork and exec: the kernel sends SIGTERM when the tests are gone, however they ended."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def written(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """What a daemon wrote into its log, as soon as it has."""

    def found() -> str | None:
        text = log.read_text(errors="replace")
        assert process.poll() is None, f"it has ended:\n{text}"
        match = re.search(pattern, text)
        return match and match[1]

    return wait_for(found, READY_WITHIN_S)


def wait_for(what: Callable[[], T | None], seconds: float) -> T:
    """The first answer that is one."""
    deadline = time.monotonic() + seconds
    while not (answer := what()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(POLL_S)
    return answer


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
