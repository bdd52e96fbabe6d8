"""Each recipe runs as it stands against a real node, and prints what its page says.

Frameworks that are not among our own are installed into an environment of their own, once, in the cache.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from benchmarks.cache import Missing
from benchmarks.servers import Mode, RabbitMQ
from postroad.testing import Node, node
from tests.docs.markdown import all_blocks

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "examples/recipes"
PAGES = ROOT / "docs/recipes"
PATIENCE_S = 300  # some start Spark, which on a busy machine takes a minute
INSTALL_SECONDS_MAX = 900

OURS = ("aws_code", "celery_tasks", "move_from_kafka", "move_from_sqs")
RABBITMQ = "move_from_rabbitmq"
AIRFLOW = "airflow_orders"
NEEDS = {
    "dramatiq_actors": ("dramatiq==2.2.1", "dramatiq-sqs==0.4.4"),
    "django_outbox": ("django==5.2.19",),
    "fastapi_shop": ("fastapi==0.163.2", "uvicorn==0.54.0", "websockets==17.4"),
    RABBITMQ: ("pika==1.4.4",),
    "faststream_orders": ("faststream[confluent]==0.7.8",),
    AIRFLOW: ("apache-airflow==3.3.2",),
    "dagster_orders": ("dagster==1.13.28",),
}


@pytest.fixture(scope="module")
def served() -> Iterator[Node]:
    with node({"http.enabled": True}) as running:
        yield running


@pytest.mark.parametrize("name", OURS)
def test_recipe_prints_what_its_page_says(name: str, served: Node, tmp_path: Path) -> None:
    assert printed_by(sys.executable, name, served, tmp_path) == told_by_page(name)


@pytest.mark.recipe_slow
@pytest.mark.parametrize("name", NEEDS)
def test_recipe_with_a_framework_prints_what_its_page_says(name: str, served: Node, tmp_path: Path) -> None:
    needed: AbstractContextManager[dict[str, str]] = nullcontext({})
    if name == RABBITMQ:
        needed = rabbitmq(tmp_path / "rabbitmq")
    with needed as environment:
        python = str(interpreter(NEEDS[name]))
        if name == AIRFLOW:
            environment = airflow(python, tmp_path / "airflow")
        assert printed_by(python, name, served, tmp_path, environment) == told_by_page(name)


@contextmanager
def rabbitmq(home: Path) -> Iterator[dict[str, str]]:
    """Debian's server; what the recipe is told of it."""
    server = RabbitMQ(Mode.PAGE_CACHE, home)
    try:
        server.start()
    except Missing as missing:
        server.stop()
        pytest.skip(str(missing))
    try:
        yield {"RABBITMQ_URL": f"amqp://guest:guest@127.0.0.1:{server.port}"}
    finally:
        server.stop()


def airflow(python: str, home: Path) -> dict[str, str]:
    """An Airflow of its own, whose DAGs are the recipe, and which has made its database."""
    settings = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(RECIPES / f"{AIRFLOW}.py"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
    }
    subprocess.run(
        [str(Path(python).with_name("airflow")), "db", "migrate"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **settings},
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return settings


def test_every_recipe_has_a_page_that_shows_it_and_is_listed() -> None:
    programs = sorted(path.stem for path in RECIPES.glob("*.py"))
    assert programs == sorted([*OURS, *NEEDS])
    listed = (PAGES / "README.md").read_text()
    for name in programs:
        assert (PAGES / f"{name}.md").exists(), name
        assert f"({name}.md)" in listed, name
        assert f"examples/recipes/{name}.py" in (PAGES / f"{name}.md").read_text()


def printed_by(
    python: str, name: str, served: Node, home: Path, environment: Mapping[str, str] | None = None
) -> str:
    done = subprocess.run(
        [python, str(RECIPES / f"{name}.py"), served.bootstrap, served.http or "-"],
        cwd=home,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "POSTROAD_PROGRAM": str(Path(sys.executable).with_name("postroad")),  # with Spark
            **(environment or {}),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def told_by_page(name: str) -> str:
    """The block of output in the recipe's page."""
    blocks = all_blocks((PAGES / f"{name}.md").read_text())
    (text,) = [block.text for block in blocks if block.language == "text"]
    return text


def interpreter(packages: tuple[str, ...]) -> Path:
    """One that knows these packages and what Postroad needs, and not Postroad itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *packages]
    mark = hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    home = cache / "postroad" / f"recipe-{mark}"
    python, complete = home / "bin" / "python", home / "complete"
    if not complete.exists():
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(home)],
            [str(python), "-m", "pip", "install", "-q", *wanted],
        ):
            subprocess.run(command, check=True, timeout=INSTALL_SECONDS_MAX)
        complete.touch()  # an installation that was broken off is begun anew
    return python
