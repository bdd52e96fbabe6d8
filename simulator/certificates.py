"""The certificate that simulated nodes show, where a seed's conditions say TLS.

Ciphertext differs in every run, so a trace has its lengths only; and all lengths are the same in every run:
Ed25519 signatures have one, those of other curves have not.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

DAYS: Final = 36_500  # beyond what clocks in a scenario jump


@cache
def files() -> tuple[Path, Path]:
    """A certificate, which is its own CA, and its key; made once for each process of the simulator."""
    directory = Path(tempfile.mkdtemp(prefix="postroad-simulator-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    certificate, key = directory / "node.pem", directory / "node.key"
    command = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-days", str(DAYS)]
    command += ["-subj", "/CN=simulated", "-set_serial", "1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def settings() -> dict[str, str]:
    """Those of a node with TLS."""
    certificate, key = files()
    return {
        "kafka.tls": "true",
        "tls.certificate": str(certificate),
        "tls.key": str(key),
        "tls.ca": str(certificate),
        "tls.verify_hostname": "false",
    }


def bootstrap(addresses: str) -> str:
    """What clients connect by."""
    return f"tls://{addresses}?ca={files()[0]}&verify=ca"
