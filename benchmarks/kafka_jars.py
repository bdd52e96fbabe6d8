"""Apache Kafka's jars: from KAFKA_HOME, from the cache, or from the Maven repository that `mvn` knows.

No archive of Kafka is downloaded: the broker is a Maven artifact like any other. It comes with its
dependencies and a logging binding (Kafka speaks slf4j and ships log4j 2, but the artifact leaves the binding
between them open).
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from benchmarks import cache, maven

VERSION = "4.3.1"
LOG4J_VERSION = "2.25.4"  # the one that this Kafka brings; the binding has to match it

ARTIFACTS = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    f"org.apache.logging.log4j:log4j-slf4j-impl:{LOG4J_VERSION}",
)


def find() -> Path:
    """A directory with the jars of a Kafka broker. Raises Missing with what to do."""
    if not shutil.which("java"):
        raise cache.Missing("Kafka needs Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless)")
    home = os.environ.get("KAFKA_HOME")
    if home:
        return _checked(Path(home) / "libs")
    kept = cache.directory(f"kafka-{VERSION}") / "libs"
    if not kept.is_dir():
        maven.fetch(f"Apache Kafka {VERSION}", ARTIFACTS, kept, "set KAFKA_HOME to an unpacked Kafka 4.x")
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
