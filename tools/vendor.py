"""What others wrote for browsers, brought into the console from the npm registry: make vendor.

`vendor.toml` beside the files names each package with its version and the SHA-256 of its archive, and each
file with its own. What does not fit is refused. `python -m tools.vendor --check` only compares what is there.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import tomllib
import urllib.request
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path("src/postroad/gateway/console/static/vendor")
REGISTRY: Final = "https://registry.npmjs.org/{name}/-/{name}-{version}.tgz"
ARCHIVE_BYTES_MAX: Final = 16 << 20
TIMEOUT_S: Final = 60.0


def packages(folder: Path = FOLDER) -> dict[str, Any]:
    return tomllib.loads((folder / "vendor.toml").read_text())


def wrong_files(folder: Path = FOLDER) -> list[str]:
    """What is missing, or is not what `vendor.toml` says."""
    found = []
    for package in packages(folder).values():
        for name, (_, digest) in package["files"].items():
            path = folder / name
            if not path.exists() or sha256(path.read_bytes()) != digest:
                found.append(name)
    return found


def fetch(name: str, package: dict[str, Any], folder: Path = FOLDER) -> None:
    url = REGISTRY.format(name=name, version=package["version"])
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        archive = answer.read(ARCHIVE_BYTES_MAX)
    if sha256(archive) != package["sha256"]:
        raise SystemExit(f"{url}: its SHA-256 is {sha256(archive)}, not the one in vendor.toml")
    with tarfile.open(fileobj=io.BytesIO(archive)) as inside:
        for own, (path, digest) in package["files"].items():
            member = inside.extractfile(f"package/{path}")
            data = b"" if member is None else member.read()
            if sha256(data) != digest:
                raise SystemExit(f"{name}: {path} has the SHA-256 {sha256(data)}, not the one in vendor.toml")
            (folder / own).write_bytes(data)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def main() -> None:
    if "--check" not in sys.argv:
        for name, package in packages().items():
            fetch(name, package)
    if wrong := wrong_files():
        raise SystemExit(f"not as vendor.toml says: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
