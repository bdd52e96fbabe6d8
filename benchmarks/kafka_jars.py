"""Apache Kafka's jars: from KAFKA_HOME, from the cache, or from the Maven repository that `mvn` knows.

No archive of Kafka is downloaded: the broker is a Maven artifact like any other. `mvn` copies it into the
cache, once, with its dependencies and a logging binding (Kafka speaks slf4j and ships log4j 2, but the
artifact leaves the binding between them open).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks import cache

VERSION = "4.3.1"
LOG4J_VERSION = "2.25.4"  # the one that this Kafka brings; the binding has to match it
FETCH_SECONDS_MAX = 600

_POM = f"""\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>postroad</groupId>
  <artifactId>benchmark-kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>{LOG4J_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


def find() -> Path:
    """A directory with the jars of a Kafka broker. Raises Missing with what to do."""
    if not shutil.which("java"):
        raise cache.Missing("Kafka needs Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless)")
    home = os.environ.get("KAFKA_HOME")
    if home:
        return _checked(Path(home) / "libs")
    kept = cache.directory(f"kafka-{VERSION}") / "libs"
    if not kept.is_dir():
        _fetch(kept)
    return _checked(kept)


def version(libs: Path) -> str:
    """The version of the broker in `libs`, from its jar's name."""
    for jar in libs.glob("kafka_2.*.jar"):
        if match := re.fullmatch(r"kafka_2\.\d+-([\d.]+)\.jar", jar.name):
            return match[1]
    return "unknown"


def _checked(libs: Path) -> Path:
    if not any(libs.glob("kafka_2.*.jar")):
        raise cache.Missing(f"KAFKA_HOME must name an unpacked Kafka 4.x with libs/kafka_2.*.jar\n({libs})")
    return libs


def _fetch(target: Path) -> None:
    """Fills `target` in one step, so that a broken download leaves nothing behind."""
    if not shutil.which("mvn"):
        raise cache.Missing(
            "Kafka is not here: set KAFKA_HOME to an unpacked Kafka 4.x, or install Maven to fetch it "
            "(Debian: apt-get install maven)"
        )
    print(f"fetching Apache Kafka {VERSION} with Maven, once …", flush=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        (Path(scratch) / "pom.xml").write_text(_POM)
        command = [
            "mvn",
            "-B",
            "-q",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-DoutputDirectory=libs",
        ]
        done = subprocess.run(
            command, cwd=scratch, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX, check=False
        )
        if done.returncode:
            why = done.stdout.strip()[-800:]
            raise cache.Missing(
                f"Maven could not fetch Kafka {VERSION} (KAFKA_HOME would do as well):\n{why}"
            )
        (Path(scratch) / "libs").rename(target)
