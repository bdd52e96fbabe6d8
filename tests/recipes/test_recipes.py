"""Each recipe runs as it stands against a real node, and prints what its page says.

Frameworks that are not among our own are installed into an environment of their own, once, in the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable

from postroad.testing import Node, node
from tests.backups.lags import call
from tests.docs.markdown import all_blocks

from . import neighbours

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "examples/recipes"
PAGES = ROOT / "docs/recipes"
PATIENCE_S = 600  # a recipe is done in seconds; the JVM of another on a busy machine is not
INSTALL_SECONDS_MAX = 900

OURS = ("aws_code", "celery_tasks", "move_from_kafka", "move_from_sqs")
AIRFLOW = "airflow_orders"
NEEDS = {
    "dramatiq_actors": ("dramatiq==2.2.1", "dramatiq-sqs==0.4.4"),
    "django_outbox": ("django==5.2.19",),
    "fastapi_shop": ("fastapi==0.163.2", "uvicorn==0.54.0", "websockets==17.4"),
    "move_from_rabbitmq": ("pika==1.4.4",),
    "faststream_orders": ("faststream[confluent]==0.7.8",),
    AIRFLOW: ("apache-airflow==3.3.2",),
    "dagster_orders": ("dagster==1.13.28",),
    "quix_totals": ("quixstreams==3.28.1",),
    "faust_counts": ("faust-streaming==0.15.3",),
}
NOTEBOOK = "spark_notebook"
JUPYTER = ("nbclient==0.11.0", "ipykernel==7.4.0")
BESIDE = {
    "move_from_rabbitmq": neighbours.rabbitmq,
    "move_from_kafka": neighbours.kafka,
    "move_from_sqs": neighbours.sqs,
    "debezium_changes": neighbours.debezium,
}


@pytest.fixture(scope="module")
def served() -> Iterator[Node]:
    with node({"http.enabled": True}) as running:
        yield running


@pytest.mark.parametrize("name", OURS)
def test_recipe_prints_what_its_page_says(name: str, served: Node, tmp_path: Path) -> None:
    assert printed_by(sys.executable, name, served, tmp_path) == told_by_page(name)


@pytest.mark.recipe_slow
@pytest.mark.parametrize("name", sorted(NEEDS.keys() - BESIDE.keys()))
def test_recipe_with_a_framework_prints_what_its_page_says(name: str, served: Node, tmp_path: Path) -> None:
    python = str(interpreter(NEEDS[name]))
    environment = airflow(python, tmp_path / "airflow") if name == AIRFLOW else {}
    assert printed_by(python, name, served, tmp_path, environment) == told_by_page(name)


@pytest.mark.recipe_slow
@pytest.mark.parametrize("name", BESIDE)
def test_recipe_with_another_server_prints_what_its_page_says(
    name: str, served: Node, tmp_path: Path
) -> None:
    python = str(interpreter(NEEDS[name])) if name in NEEDS else sys.executable
    with BESIDE[name](tmp_path / "beside") as environment:
        assert printed_by(python, name, served, tmp_path, environment) == told_by_page(name)


@pytest.mark.recipe_slow
def test_debeziums_changes_are_merged_into_a_table_as_the_database_has_it(
    served: Node, tmp_path: Path
) -> None:
    with neighbours.debezium(tmp_path) as environment:
        printed_by(sys.executable, "debezium_changes", served, tmp_path, environment)
    listed = json.loads(call("topic", "list", "--json", bootstrap=served.bootstrap))
    topic = max(each["topic"] for each in listed if each["topic"].startswith("shop-"))
    merge = ["pipeline", "merge", "--topic", topic, "--values", "debezium", "--to", str(tmp_path / "orders")]
    subprocess.run(
        [sys.executable, "-m", "postroad", *merge, "--once", "-b", served.bootstrap],
        check=True,
        timeout=PATIENCE_S,
    )
    rows = DeltaTable(str(tmp_path / "orders")).to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["total"]) for row in rows) == [(2, 25), (3, 30)]


@pytest.mark.recipe_slow
def test_notebook_gives_what_stands_under_its_cells(served: Node, tmp_path: Path) -> None:
    python, done = interpreter(JUPYTER), tmp_path / "done.ipynb"
    shutil.copy(RECIPES / f"{NOTEBOOK}.ipynb", done)
    subprocess.run(
        [python, "-m", "jupyter", "execute", str(done), "--inplace"],
        check=True,
        env={
            **os.environ,
            # PySpark is ours: it alone has 490 MB.
            "PYTHONPATH": f"{ROOT / 'src'}:{sysconfig.get_path('purelib')}",
            "PYSPARK_PYTHON": str(python),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "POSTROAD_BOOTSTRAP": served.bootstrap,
        },
        timeout=PATIENCE_S,
    )
    outputs = results(done)
    assert outputs == results(RECIPES / f"{NOTEBOOK}.ipynb")
    assert any("|     ann|     2| 42.5|" in output for output in outputs)


def results(notebook: Path) -> list[str]:
    """What cells printed, and their last values; not what Spark says on standard error while it starts."""
    cells = json.loads(notebook.read_text())["cells"]
    found = []
    for output in (output for cell in cells for output in cell.get("outputs", ())):
        if output["output_type"] == "execute_result":
            found.append("".join(output["data"]["text/plain"]))
        elif output["name"] == "stdout":
            found.append("".join(output["text"]))
    return found


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
    programs = sorted(path.stem for path in RECIPES.iterdir() if path.suffix in (".py", ".ipynb"))
    assert programs == sorted({*OURS, *NEEDS, *BESIDE, NOTEBOOK})
    listed = (PAGES / "README.md").read_text()
    for name in programs:
        assert (PAGES / f"{name}.md").exists(), name
        assert f"({name}.md)" in listed, name
        (program,) = RECIPES.glob(f"{name}.*")
        assert f"examples/recipes/{program.name}" in (PAGES / f"{name}.md").read_text()


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
            "PIPELINE_PROGRAM": str(Path(sys.executable).with_name("postroad")),  # with Spark
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
