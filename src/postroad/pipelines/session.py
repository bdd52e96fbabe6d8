"""A Spark session for a pipeline, and a look around before it: is all there that Spark needs?

Spark's own words for a missing Java are a stack trace, and it takes seconds to say them. `check` finds
a missing, old or broken Java, and missing packages, without starting Spark.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from postroad.pipelines.errors import NotInstalled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
JAVA_MIN: Final = 17
PYSPARK_MIN: Final = (4, 2)  # the first whose Python streams know AvailableNow
# Nothing runs so often in a short session that it pays to compile it well.
SHORT_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
JAVA_ANSWERS_WITHIN_S: Final = 30  # 0.1 s is usual; a broken one may hang

_INSTALL_EXTRA: Final = "pip install 'postroad[spark]'"
_INSTALL_JAVA: Final = (
    f"install Java {JAVA_MIN} or newer (Debian, Ubuntu: apt install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17) or point JAVA_HOME to one"
)
_JAVA_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')

# One machine: no network but loopback, and no more shuffle tasks than a small machine has use for.
_LOCAL_CONFIG: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_CONFIG: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={_LOGGING}",
    # Dates in an archive are UTC's, and so are the times that SQL shows.
    "spark.sql.session.timeZone": "UTC",
    # Our source reads what a query's filters may take. (A source that does is refused where this is off.)
    "spark.sql.python.filterPushdown.enabled": "true",
    # A busy machine starts Python workers slowly; Spark's own 15 s have ended jobs.
    "spark.python.authenticate.socketTimeout": "120",
}


@contextmanager
def session(
    name: str,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    *,
    is_short: bool = False,
) -> Iterator[SparkSession]:
    """A session named `name`, stopped at the end of the block. `is_short`: it has little to do, and Java's
    compiler is not to spend more on it than it brings.

    `master` is a Spark master, or `sc://…` for a Spark Connect server; without one it is what
    spark-submit says, or else this machine. `config` are settings of Spark that win over ours.
    Raises NotInstalled, before anything is started, where something is missing.
    """
    check(master)
    with _interrupted_at_once():
        spark = _build(name, master, config or {}, is_short)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _interrupted_at_once() -> Iterator[None]:
    """Ctrl-C in this block ends the program by its signal, and Java with it.

    Where Python would raise KeyboardInterrupt PySpark makes a traceback of it, while it is half started. When
    it is started it handles the signal itself.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if is_ours and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def check(master: str | None = None) -> None:
    """Raises NotInstalled with what to install; starts no Spark."""
    check_packages()
    if not (is_submitted() or is_connect(master)):
        check_java()


def check_packages() -> None:
    found = _version("pyspark")
    if found is None:
        raise NotInstalled(f"pipelines run on Spark, and pyspark is not installed: {_INSTALL_EXTRA}")
    if found < PYSPARK_MIN:
        have, need = (".".join(map(str, parts)) for parts in (found, PYSPARK_MIN))
        raise NotInstalled(f"pipelines need pyspark {need} or newer, and this is {have}: {_INSTALL_EXTRA}")
    for package in ("pyarrow", "numpy"):
        if _version(package) is None:
            raise NotInstalled(f"pipelines need {package}, which is not installed: {_INSTALL_EXTRA}")


def check_java() -> None:
    """The same Java that Spark would take: JAVA_HOME's, or else the first on the path."""
    java = _java()
    try:
        asked = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_ANSWERS_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{java} does not run ({type(error).__name__}): {_INSTALL_JAVA}") from None
    found = _JAVA_VERSION.search(asked.stderr + asked.stdout)
    if asked.returncode != 0 or found is None:
        raise NotInstalled(f"{java} does not say its version: {_INSTALL_JAVA}")
    if int(found[1]) < JAVA_MIN:
        raise NotInstalled(f"Spark needs Java {JAVA_MIN} or newer, and {java} is {found[1]}: {_INSTALL_JAVA}")


def hush() -> None:
    """PySpark says in this process only what pipelines don't say themselves."""
    # Said at every start about a pandas newer than PySpark knows; pipelines move Arrow, not pandas.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    # An error in a query is raised, and need not be logged as well.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


def home_without_zip() -> Path | None:
    """A home of Spark's without the Python code in it, which is zipped there.

    Each of the worker processes would compile it anew, which takes a second. Without it they take what pip
    installed: the same, and compiled.

    In the user's cache, since Java may want its jars until the very end; None if that can't be written.
    """
    import pyspark

    code = Path(pyspark.__file__).parent
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "postroad"
    home = cache / f"spark-{hashlib.sha256(str(code).encode()).hexdigest()[:16]}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name in ("bin", "jars"):
            with suppress(FileExistsError):
                (home / name).symlink_to(code / name)
    except (OSError, RuntimeError):  # no home directory
        return None
    return home


def is_submitted() -> bool:
    """Whether spark-submit started this program: then the JVM runs already and knows its master."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_local(master: str | None) -> bool:
    """Whether all of Spark runs on this machine, as this program starts it."""
    if is_connect(master) or (master is None and is_submitted()):
        return False
    return (master or LOCAL).startswith("local")


def is_connect(master: str | None) -> bool:
    return (master or "").startswith("sc://") or (master is None and "SPARK_REMOTE" in os.environ)


def _java() -> str:
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise NotInstalled(f"JAVA_HOME is {home}, and there is no Java in it: {_INSTALL_JAVA}")
        return str(java)
    on_path = shutil.which("java")
    if on_path is None:
        raise NotInstalled(f"Spark runs on Java, and there is none here: {_INSTALL_JAVA}")
    return on_path


def _build(name: str, master: str | None, config: Mapping[str, str], is_short: bool) -> SparkSession:
    from pyspark.sql import SparkSession

    # Workers run what the driver runs, not whatever python3 is first on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    hush()
    builder = SparkSession.builder.appName(f"postroad {name}")
    settings = {**_CONFIG, **config}
    if is_connect(master):
        builder = builder.remote(master) if master else builder
        settings = dict(config)  # a server's settings are not ours to make
    elif master is not None or not is_submitted():
        builder = builder.master(master or LOCAL)
        if is_local(master):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            os.environ.setdefault("SPARK_LAUNCHER_OPTS", SHORT_JAVA)
            if "SPARK_HOME" not in os.environ and (home := home_without_zip()):
                os.environ["SPARK_HOME"] = str(home)
            settings = {**_LOCAL_CONFIG, **settings}
            if is_short:
                settings[_JAVA_OPTIONS] = f"{settings[_JAVA_OPTIONS]} {SHORT_JAVA}"
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _version(package: str) -> tuple[int, ...] | None:
    try:
        return tuple(int(number) for number in re.findall(r"\d+", version(package))[:2])
    except PackageNotFoundError:
        return None
