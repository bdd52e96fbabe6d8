"""Spark's own Kafka connector: jars from the cache, or from the Maven repository that `mvn` knows.

Spark would fetch them itself (`spark.jars.packages`), by Ivy: with other settings than Maven's, at every
start of a session, and into the user's home. Here it is done once, and a session gets files.

Connector and Spark must be of one version, and a Maven repository may lag behind PyPI or hold a release in
part. Then both connectors run on the newest PySpark whose connector is to be had: it lies in the cache, too,
and wins by PYTHONPATH over the installed one; all else (Python, pyarrow, Postroad) stays the same. Whatever
is not the installed PySpark with its own connector is said in `note`, which belongs beside every figure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from benchmarks import cache, maven

SCALA = "2.13"

MIRROR = "gcs-maven-central-mirror"  # that Spark's POMs ask first, though few networks let them
INSTALL_SECONDS_MAX = 900


class Release(NamedTuple):
    """Versions of PySpark with its connector, of the jar that gets tokens for secured brokers, and of Avro's.

    The second does nothing while rows are read or written, so one of another release is better than none; and
    so is another release's Avro, where it works.
    """

    spark: str
    tokens: str
    avro: str

    def artifacts(self) -> list[str]:
        connector, tokens = (f"org.apache.spark:spark-{name}-kafka-0-10_{SCALA}" for name in _NAMES)
        avro = f"org.apache.spark:spark-avro_{SCALA}:{self.avro}"
        return [f"{connector}:{self.spark}", f"{tokens}:{self.tokens}", avro]


_NAMES = ("sql", "token-provider")
# Tried in this order, after the installed PySpark's own; none older than the data source `postroad` needs.
OLDER = (Release("4.2.0", "4.2.0", "4.2.0"), Release("4.2.0", "4.0.0", "4.1.1"))


class Connector(NamedTuple):
    """`home`: where the PySpark lies that the jars belong to; None if it is the installed one."""

    release: Release
    jars: tuple[Path, ...]
    home: Path | None
    note: str  # what is not as a user would have it; empty if nothing

    def environment(self) -> dict[str, str]:
        """For a process in which `import pyspark` is to find the right one, and for its workers."""
        if self.home is None:
            return {}
        paths = [str(self.home), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {"PYTHONPATH": os.pathsep.join(paths)}

    def config(self) -> dict[str, str]:
        """For the session."""
        return {"spark.jars": ",".join(map(str, self.jars))}


def find() -> Connector:
    """Raises Missing with what to do."""
    if not shutil.which("java"):
        raise cache.Missing("Spark needs Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless)")
    installed = version("pyspark")
    problem: cache.Missing | None = None
    for release in (Release(installed, installed, installed), *OLDER):
        try:
            libs = _libs(release)
        except cache.Missing as missing:
            problem = problem or missing
            continue
        home = None if release.spark == installed else _pyspark(release.spark)
        return Connector(release, _beside(home, libs), home, _note(installed, release))
    assert problem is not None
    raise problem


def _libs(release: Release) -> Path:
    mixed = "" if release.tokens == release.spark else f"-tokens-{release.tokens}"
    kept = cache.directory(f"spark-kafka-{release.spark}{mixed}-avro-{release.avro}") / "libs"
    if not kept.is_dir():
        what = f"Spark's Kafka connector {release.spark}"
        maven.fetch(what, release.artifacts(), kept, not_from=[MIRROR])
    return kept


def _note(installed: str, release: Release) -> str:
    notes = []
    if release.spark != installed:
        notes.append(
            f"The Kafka connector of Spark {installed}, which is installed, could not be fetched: everything "
            f"here ran on Spark {release.spark}."
        )
    if release.tokens != release.spark:
        notes.append(
            f"Its spark-token-provider-kafka-0-10 is {release.tokens}'s: its own could not be fetched."
        )
    if release.avro != release.spark:
        notes.append(f"Its spark-avro is {release.avro}'s: its own could not be fetched.")
    return " ".join(notes)


def _pyspark(spark: str) -> Path:
    """A directory with that PySpark, made in one step."""
    kept = cache.directory(f"pyspark-{spark}") / "packages"
    if kept.is_dir():
        return kept
    print(f"installing PySpark {spark} beside the installed one, once …", flush=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
        target = Path(scratch) / "packages"
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(target), f"pyspark=={spark}"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX, check=False
        )
        if done.returncode:
            raise cache.Missing(f"PySpark {spark} could not be installed\n{done.stderr.strip()[-500:]}")
        target.rename(kept)
    return kept


def _beside(home: Path | None, libs: Path) -> tuple[Path, ...]:
    """Without what PySpark brings itself: no class twice, and none of another version."""
    brought = {_name(jar) for jar in (_package(home) / "jars").glob("*.jar")}
    return tuple(sorted(jar for jar in libs.glob("*.jar") if _name(jar) not in brought))


def _package(home: Path | None) -> Path:
    if home is not None:
        return home / "pyspark"
    import pyspark

    return Path(pyspark.__file__).parent


def _name(jar: Path) -> str:
    """`kafka-clients-4.1.0.jar` → `kafka-clients`: all before the part that is the version."""
    parts = jar.stem.split("-")
    numbers = (i for i, part in enumerate(parts) if i and part[:1].isdigit() and "." in part)
    return "-".join(parts[: next(numbers, len(parts))])
