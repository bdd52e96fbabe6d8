"""The C clients in `c/`: built when they are first needed, kept in the cache until their source changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import cache

SOURCES = Path(__file__).parent / "c"
CLIENT_SECONDS_MAX = 90

# program: (libraries to link, the Debian package that brings their headers)
PROGRAMS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "kafka": (("rdkafka",), "librdkafka-dev"),
    "kafka_raw": ((), None),
    "nats": ((), None),
    "redis": (("hiredis",), "libhiredis-dev"),
    "rabbitmq": (("rabbitmq",), "librabbitmq-dev"),
    "share": ((), None),
    "nats_queue": ((), None),
    "rabbitmq_queue": (("rabbitmq",), "librabbitmq-dev"),
    "sqs": ((), None),
    "stream": ((), None),
}


class ClientFailed(Exception):
    """A client ended with an error; the text is what it said."""


def build(name: str) -> Path:
    """The client's program, compiled if need be. Raises Missing without a compiler or a library."""
    program = cache.directory(f"bench-clients-{_fingerprint(name)}") / name
    if program.exists():
        return program
    compiler = shutil.which("cc")
    if not compiler:
        raise cache.Missing(
            "the clients are written in C and need a compiler (Debian: apt-get install gcc libc6-dev)"
        )
    libraries, package = PROGRAMS[name]
    command = [compiler, "-O2", "-Wall", "-Wextra", "-o", str(program), str(SOURCES / f"{name}.c")]
    command += [f"-l{library}" for library in (*libraries, "pthread")]
    error = _compile(command)
    if error and package and _install(package):
        error = _compile(command)
    if error:
        hint = f" (Debian: apt-get install {package})" if package else ""
        raise cache.Missing(f"the client {name}.c can't be compiled{hint}\n{error.strip()[:500]}")
    return program


def run(
    program: Path, arguments: Sequence[object], environment: Mapping[str, str] | None = None
) -> dict[str, float]:
    """Runs a client (see c/bench.h), with more variables in its environment if it is told some; answers its
    figures. Raises ClientFailed."""
    try:
        done = subprocess.run(
            [str(program), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=CLIENT_SECONDS_MAX,
            check=False,
            env={**os.environ, **(environment or {})},
        )
    except subprocess.TimeoutExpired:
        raise ClientFailed(f"no end within {CLIENT_SECONDS_MAX} s") from None
    if done.returncode:
        raise ClientFailed(done.stderr.strip()[-300:] or f"status {done.returncode}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


@contextmanager
def running(program: Path, arguments: Sequence[object]) -> Iterator[dict[str, float]]:
    """A client that answers and then waits, as `hold` does: it ends with the context. Raises ClientFailed."""
    child = subprocess.Popen(
        [str(program), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdin
        assert child.stdout
        assert child.stderr
        figures = child.stdout.readline()  # bounded by the client's own seconds
        if not figures:
            raise ClientFailed(child.stderr.read().strip()[-300:])
        yield json.loads(figures)
        child.stdin.close()


def _fingerprint(name: str) -> str:
    digest = hashlib.sha256()
    for source in (*sorted(SOURCES.glob("*.h")), SOURCES / f"{name}.c"):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _compile(command: Sequence[str]) -> str:
    """What the compiler complained of; empty if there is a program now."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def _install(package: str) -> bool:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    print(f"installing {package} …", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update"], ["install", "-y", package]):
        if subprocess.run(
            ["apt-get", "-qq", *step], env=environment, capture_output=True, check=False
        ).returncode:
            return False
    return True
