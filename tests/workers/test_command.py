"""`postroad worker`: several processes, restarts, new code, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import postroad
from postroad.testing import Node

PATIENCE_S = 60.0

MODULE = """
import asyncio, os, sys
import postroad

app = postroad.App()

def tell(*words):
    # one write: several processes share the file
    os.write(1, (" ".join(map(str, ("VERSION", *words, os.getpid()))) + "\\n").encode())

@app.worker(NAME, topic=NAME, concurrency=2, attempts=5)
async def work(job: str, message: postroad.Message) -> None:
    tell("begun", job, message.attempt)
    if job == "die" and message.attempt == 1:
        os._exit(9)
    if job == "long":
        await asyncio.sleep(float(sys.argv[-1]) if sys.argv[-1].isdigit() else 1.0)
    if job == "hang" and message.attempt == 1:
        await asyncio.sleep(600)
    tell("ended", job, message.attempt)
"""


class Running:
    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.log = log

    def lines(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith("v")]

    def wait_for(self, is_so: Callable[[list[str]], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so(self.lines()):
            assert time.monotonic() < deadline, f"{what} did not happen:\n{self.log.read_text()}"
            assert self.process.poll() is None, f"it ended before {what}:\n{self.log.read_text()}"
            time.sleep(0.02)

    def has(self, start: str) -> None:
        self.wait_for(lambda lines: any(line.startswith(start) for line in lines), start)


@contextmanager
def worker(home: Path, bootstrap: str, *options: str) -> Iterator[Running]:
    log = home / "worker.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "postroad", "worker", "jobs:app", *options],
            cwd=home,
            # Python takes bytecode for current if a file of the same size changed within the same second.
            env={**os.environ, "POSTROAD_BOOTSTRAP": bootstrap, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=output,
            stderr=output,
            text=True,
            start_new_session=True,
        )
    try:
        yield Running(process, log)
    finally:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            process.send_signal(number)
            try:
                process.wait(10)
                break
            except subprocess.TimeoutExpired:
                continue


@pytest.fixture
def client(postroad_session: Node) -> Iterator[postroad.SyncClient]:
    with postroad.SyncClient(postroad_session.bootstrap) as connected:
        yield connected


@pytest.fixture
def home(tmp_path: Path, name: str) -> Path:
    write(tmp_path, name, "v1")
    return tmp_path


def write(home: Path, name: str, version: str) -> None:
    (home / "jobs.py").write_text(MODULE.replace("NAME", repr(name)).replace("VERSION", version))


def test_signal_finishes_the_job_that_runs(
    home: Path, name: str, client: postroad.SyncClient, postroad_session: Node
) -> None:
    client.publish(name, "long")
    with worker(home, postroad_session.bootstrap) as running:
        running.has("v1 begun long 1")
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(PATIENCE_S) == 0
        assert running.lines()[-1].startswith("v1 ended long 1")


def test_second_signal_cancels_it_and_the_job_comes_again(
    home: Path, name: str, client: postroad.SyncClient, postroad_session: Node
) -> None:
    client.publish(name, "hang")
    with worker(home, postroad_session.bootstrap) as running:
        running.has("v1 begun hang 1")
        running.process.send_signal(signal.SIGINT)
        running.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + PATIENCE_S
        while running.process.poll() is None:  # two signals that come at once may be one
            assert time.monotonic() < deadline
            time.sleep(0.2)
            running.process.send_signal(signal.SIGINT)
    with worker(home, postroad_session.bootstrap) as running:
        running.has("v1 ended hang 2")


def test_process_that_dies_is_started_again_and_its_job_comes_again(
    home: Path, name: str, client: postroad.SyncClient, postroad_session: Node
) -> None:
    with worker(home, postroad_session.bootstrap, "--processes", "2") as running:
        client.publish(name, "die")
        running.has("v1 ended die 2")
        client.publish_many(name, ["a", "b", "c"])
        for job in "abc":
            running.has(f"v1 ended {job} 1")
        running.wait_for(
            lambda _: "ended with exit code 9: starting it again" in running.log.read_text(), "restart"
        )
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(PATIENCE_S) == 0


def test_processes_end_when_the_one_that_looks_after_them_is_killed(
    home: Path, name: str, client: postroad.SyncClient, postroad_session: Node
) -> None:
    with worker(home, postroad_session.bootstrap, "--processes", "2") as running:
        client.publish_many(name, [str(number) for number in range(100)])
        running.wait_for(lambda lines: sum(" ended " in line for line in lines) == 100, "all jobs")
        pids = {int(line.split()[-1]) for line in running.lines()}
        running.process.kill()
        running.process.wait()
        deadline = time.monotonic() + PATIENCE_S
        while any(Path(f"/proc/{pid}").exists() and not is_zombie(pid) for pid in pids):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_new_code_is_run_when_a_file_changes(
    home: Path, name: str, client: postroad.SyncClient, postroad_session: Node
) -> None:
    with worker(home, postroad_session.bootstrap, "--reload") as running:
        client.publish(name, "a")
        running.has("v1 ended a")
        write(home, name, "v2")
        running.wait_for(lambda _: "jobs.py changed: starting anew" in running.log.read_text(), "the change")
        deadline = time.monotonic() + PATIENCE_S
        while not any(line.startswith("v2 ended") for line in running.lines()):
            assert time.monotonic() < deadline, running.log.read_text()
            client.publish(name, "b")  # the old process may still take some
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nothing", "there is no module 'nothing' in "),
        ("jobs:nothing", "module 'jobs' has no postroad.App 'nothing'; it has app"),
        ("a.b:app", "there is no module 'a.b' in "),
    ],
)
def test_app_that_is_not_there_is_told(home: Path, target: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "postroad", "worker", target],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_cluster_that_comes_later_is_waited_for(home: Path, name: str, postroad: Node) -> None:
    import postroad as api

    with api.SyncClient(postroad.bootstrap) as client:
        client.publish(name, "a")
    postroad.stop()
    with worker(home, postroad.bootstrap) as running:
        running.wait_for(lambda _: "trying again" in running.log.read_text(), "a try")
        postroad.start()
        running.has("v1 ended a")


SCRIPT = """
import sys
import postroad

app = postroad.App(sys.argv[1])

@app.worker("greet", topic=sys.argv[2])
async def greet(name: str) -> None:
    print("hello", name, flush=True)

app.run()
print("ended in order", flush=True)
"""


def test_script_runs_its_workers_until_it_is_told_to_stop(
    tmp_path: Path, name: str, postroad_session: Node
) -> None:
    import postroad as api

    (tmp_path / "script.py").write_text(SCRIPT)
    with api.SyncClient(postroad_session.bootstrap) as client:
        client.publish(name, "anna")
    command = [sys.executable, str(tmp_path / "script.py"), postroad_session.bootstrap, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "hello anna\n"
        script.terminate()
        assert script.stdout.read() == "ended in order\n"
    assert script.returncode == 0
