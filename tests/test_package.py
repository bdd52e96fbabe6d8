"""The package as others get it: built, installed into an environment of its own, and run there."""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Nothing of this checkout: neither its sources nor its environment.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
INSTALL_S = 600


def call(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the source distribution."""
    directory = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "hatchling", "build", "-d", directory)
    return directory


def wheel_in(directory: Path) -> Path:
    (wheel,) = directory.glob("*.whl")
    return wheel


def files_of(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def test_wheel_has_all_of_the_package_and_nothing_else(built: Path) -> None:
    sources = (path for name in ("postroad", "pyspark_postroad") for path in (ROOT / "src" / name).rglob("*"))
    tracked = {
        str(path.relative_to(ROOT / "src"))
        for path in sources
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files_of(wheel_in(built)) == tracked
    assert "postroad/py.typed" in tracked


def test_source_distribution_makes_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    call(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again", cwd=source)
    assert files_of(wheel_in(tmp_path / "again")) == files_of(wheel_in(built))
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "deploy/Dockerfile", "docs/README.md"):
        assert (source / name).exists(), name


def test_metadata_say_what_the_package_is(built: Path) -> None:
    with zipfile.ZipFile(wheel_in(built)) as opened:
        (name,) = (each for each in opened.namelist() if each.endswith(".dist-info/METADATA"))
        read = email.message_from_bytes(opened.read(name))
        licenses = [each for each in opened.namelist() if "/licenses/LICENSE" in each]
    assert (read["Name"], read["Version"]) == ("postroad", PROJECT["version"])
    assert read["Requires-Python"] == ">=3.11"
    assert read["License-Expression"] == "Apache-2.0"
    assert read["Author"] == "The Postroad developers"
    assert read["Description-Content-Type"] == "text/markdown"
    assert licenses
    classifiers = set(read.get_all("Classifier") or [])
    assert {f"Programming Language :: Python :: {version}" for version in PYTHONS[:3]} <= classifiers
    assert {"Typing :: Typed", "Framework :: AsyncIO", "Operating System :: POSIX :: Linux"} <= classifiers
    assert {"backup", "oauth", "spark"} <= set(read.get_all("Provides-Extra") or [])


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel. Its dependencies are ours: tests are offline."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    offline = ("--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check")
    call(sys.executable, "-m", "pip", "--python", python, "install", "-q", *offline, wheel_in(built))
    site = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    own = site / "postroad"
    assert own.is_dir()
    # Behind the environment's own: what is installed there comes first.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def test_installed_package_runs_a_node_and_its_commands(installed: Path, tmp_path: Path) -> None:
    where = call(installed / "python", "-c", "import postroad; print(postroad.__file__)", cwd=tmp_path)
    assert str(installed.parent) in where
    assert call(installed / "postroad", "--version", cwd=tmp_path).strip().endswith(PROJECT["version"])
    names = "import postroad; print([getattr(postroad, name) for name in postroad.__all__])"
    assert "postroad.workers.app.App" in call(installed / "python", "-c", names, cwd=tmp_path)
    run_a_node(installed, tmp_path)


RUNS_A_NODE = """
import sys
from click.testing import CliRunner
from postroad.cli import main
from postroad.testing import node

with node() as running:
    for command in (["publish", "hello", "world"], ["consume", "hello", "--from-beginning", "--count", "1"]):
        done = CliRunner().invoke(main, [*command, "--bootstrap", running.bootstrap])
        assert done.exit_code == 0, done.output
    print(done.stdout, end="")
"""


def run_a_node(programs: Path, home: Path) -> None:
    assert call(programs / "python", "-c", RUNS_A_NODE, cwd=home) == "world\n"


@pytest.mark.skipif("PACKAGE" not in os.environ, reason="it installs from PyPI: make package")
@pytest.mark.parametrize("version", PYTHONS)
def test_pip_installs_it_into_a_fresh_environment(version: str, built: Path, tmp_path: Path) -> None:
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no Python {version} here")
    call(python, "-m", "venv", tmp_path / "fresh")
    programs = tmp_path / "fresh" / "bin"
    call(programs / "pip", "install", "-q", "--disable-pip-version-check", wheel_in(built))
    run_a_node(programs, tmp_path)


@pytest.mark.skipif("PACKAGE" not in os.environ, reason="it installs from PyPI: make package")
def test_oldest_versions_that_it_asks_for_run_a_node_and_show_every_command(
    built: Path, tmp_path: Path
) -> None:
    call(sys.executable, "-m", "venv", tmp_path / "oldest")
    programs = tmp_path / "oldest" / "bin"
    oldest = [each.partition(";")[0].replace(">=", "==") for each in PROJECT["dependencies"]]
    call(programs / "pip", "install", "-q", "--disable-pip-version-check", wheel_in(built), *oldest)
    run_a_node(programs, tmp_path)
    assert "EVERY HELP\n" in call(programs / "python", "-c", SHOWS_EVERY_HELP, cwd=tmp_path)


SHOWS_EVERY_HELP = """
import click
from postroad.cli import main

def show(command, above):
    context = click.Context(command, parent=above, info_name=command.name)
    assert command.get_help(context)
    for name in getattr(command, "list_commands", lambda _: ())(context):
        show(command.get_command(context, name), context)

show(main, None)
print("EVERY HELP")
"""
