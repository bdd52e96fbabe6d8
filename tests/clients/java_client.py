"""Java's own client of Apache Kafka: fetched by Maven, with a small program that is compiled here."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path
from typing import IO

import pytest

from benchmarks import cache, maven

from .cluster_load import JOIN_S, Client

VERSION = "4.3.1"
PROGRAM = "ClusterClient"


def classpath(directory: Path, program: str = PROGRAM) -> str:
    """The compiled program and the client's jars. Skips the test where there is no Java, or no Maven."""
    for command in ("java", "javac"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not here")
    libs = cache.directory(f"kafka-clients-{VERSION}") / "libs"
    if not libs.is_dir():
        try:
            maven.fetch("Java's Kafka client", [f"org.apache.kafka:kafka-clients:{VERSION}"], libs)
        except cache.Missing as missing:
            pytest.skip(str(missing))
    jars = ":".join(sorted(map(str, libs.glob("*.jar"))))
    source = Path(__file__).parent / "java" / f"{program}.java"
    subprocess.run(["javac", "-cp", jars, "-d", str(directory), str(source)], check=True, timeout=JOIN_S)
    return f"{directory}:{jars}"


class Java(Client):
    """A producer, a member of a consumer group and one of a share group, in one process."""

    def __init__(self, bootstrap: str, path: str, protocol: str) -> None:
        super().__init__(bootstrap)
        self.shared: list[int] = []
        self.share_group = f"share-{self.group}"
        self._sent = threading.Event()
        command = ["java", "-Xmx256m", "-cp", path, PROGRAM, bootstrap, self.topic, self.group]
        self._command = [*command, self.share_group, protocol]
        self._process: subprocess.Popen[str] | None = None
        self._started = threading.Event()

    @property
    def missing(self) -> list[int]:
        return sorted(self.acknowledged - (set(self.received) & set(self.shared)))

    def publish(self, done: threading.Event) -> None:
        self._started.wait(JOIN_S)
        done.wait()
        self._say()
        assert self._sent.wait(JOIN_S), "the producer does not end"

    def consume(self, done: threading.Event) -> None:
        pipe = subprocess.PIPE
        with subprocess.Popen(
            self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        ) as self._process:
            assert self._process.stdout is not None
            reader = threading.Thread(target=self._read, args=(self._process.stdout,))
            reader.start()
            self._started.set()
            done.wait()
            self._say()
            reader.join(JOIN_S)
            if self._process.poll() is None and reader.is_alive():
                self._process.kill()
                self.errors.append("Java's client does not end")

    def _say(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            word, _, rest = line.strip().partition(" ")
            if word == "acknowledged":
                self.acknowledged.add(int(rest))
            elif word == "received":
                self.received.append(int(rest))
            elif word == "shared":
                self.shared.append(int(rest))
            elif word == "sent":
                self._sent.set()
            else:
                self.errors.append(line.strip())
