"""Java programs from the Maven repository that `mvn` knows: their jars are copied into the cache, once."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import cache

FETCH_SECONDS_MAX = 600

_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>postroad</groupId>
  <artifactId>benchmark-peer</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{}  </dependencies>
  <repositories>
{}  </repositories>
</project>
"""

_DEPENDENCY = """\
    <dependency>
      <groupId>{}</groupId>
      <artifactId>{}</artifactId>
      <version>{}</version>
    </dependency>
"""


# The project's own word for an id wins over that of its dependencies.
_SILENCED = """\
    <repository>
      <id>{}</id>
      <url>file:${{project.basedir}}</url>
      <releases><enabled>false</enabled></releases>
      <snapshots><enabled>false</enabled></snapshots>
    </repository>
"""


def fetch(
    what: str, artifacts: Sequence[str], target: Path, otherwise: str = "", not_from: Sequence[str] = ()
) -> None:
    """Fills `target` with `artifacts` (`group:artifact:version`) and all that they need.

    In one step, so that a broken download leaves nothing behind. Raises Missing; `otherwise` says what would
    help as well. `not_from` are ids of repositories that the artifacts themselves bring into play.
    """
    if not shutil.which("mvn"):
        raise cache.Missing(
            f"{what} is not here: {otherwise and otherwise + ', or '}install Maven to fetch it "
            "(Debian: apt-get install maven)"
        )
    print(f"fetching {what} with Maven, once …", flush=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        dependencies = "".join(_DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts)
        silenced = "".join(map(_SILENCED.format, not_from))
        (Path(scratch) / "pom.xml").write_text(_POM.format(dependencies, silenced))
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
            hint = f" ({otherwise})" if otherwise else ""
            raise cache.Missing(f"Maven could not fetch {what}{hint}:\n{done.stdout.strip()[-800:]}")
        (Path(scratch) / "libs").rename(target)
