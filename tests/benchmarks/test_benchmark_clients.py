"""The C clients compile without a warning and say clearly what is wrong."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import clients
from benchmarks.process import free_port

HEADERS = {
    "kafka": "librdkafka/rdkafka.h",
    "redis": "hiredis/hiredis.h",
    "rabbitmq": "amqp.h",
    "rabbitmq_queue": "amqp.h",
}


@pytest.fixture(autouse=True)
def _compiler() -> None:
    if not shutil.which("cc"):
        pytest.skip("no C compiler here (Debian: gcc, libc6-dev)")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where clients are kept once they are built: each of them is needed by several tests."""
    directory = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(directory))
        yield directory


def require_headers(program: str) -> None:
    header = HEADERS.get(program)
    if header and not Path("/usr/include", header).exists():
        pytest.skip(f"{header} is not here (Debian: {clients.PROGRAMS[program][1]})")


@pytest.mark.parametrize("program", clients.PROGRAMS)
def test_client_compiles_without_warnings(program: str) -> None:
    require_headers(program)
    source = clients.SOURCES / f"{program}.c"
    done = subprocess.run(
        ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_client_is_built_once_and_kept_outside_the_repository(cache: Path) -> None:
    program = clients.build("kafka_raw")
    built_ns = program.stat().st_mtime_ns
    assert clients.build("kafka_raw") == program
    assert program.is_relative_to(cache)
    assert program.stat().st_mtime_ns == built_ns


def test_client_without_a_server_ends_with_a_sentence() -> None:
    with pytest.raises(clients.ClientFailed, match="can't connect"):
        clients.run(clients.build("nats"), (free_port(), "create", "t"))


def test_client_refuses_a_command_that_it_does_not_know() -> None:
    with pytest.raises(clients.ClientFailed, match="does not know dance"):
        clients.run(clients.build("kafka_raw"), (free_port(), "dance", "t"))


def test_queue_client_refuses_an_option_that_it_does_not_know() -> None:
    with pytest.raises(clients.ClientFailed, match="there is no option colour"):
        clients.run(clients.build("share"), (free_port(), "flow", "q", "colour=red"))


def test_client_that_should_wait_and_fails_says_why() -> None:
    arguments = (free_port(), "hold", "q")
    with (
        pytest.raises(clients.ClientFailed, match="can't connect"),
        clients.running(clients.build("share"), arguments),
    ):
        pass


def test_every_client_is_a_short_file() -> None:
    programs = list(clients.SOURCES.glob("*.c"))
    assert {source.stem for source in programs} == set(clients.PROGRAMS)
    sources = [*programs, *clients.SOURCES.glob("*.h")]
    assert all(len(source.read_text().splitlines()) <= 500 for source in sources)
