"""Three nodes on a real etcd with TLS and logins everywhere: clients, nodes, gateway, etcd. Certificates and
passwords can be changed while all of them work.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from postroad.cli import main
from postroad.cluster.store_address import TlsFiles
from postroad.testing import ClusterNode, RunningCluster
from postroad.testing.etcd import etcd
from tests.certificates import Authority
from tests.clients.confluent import Secured
from tests.clients.wait import until

from .cluster_load import ClusterLoad
from .loaded_cluster import SETTINGS
from .replicas_at_rest import assert_equal_at_rest
from .sqs_load import SecuredUrl, client

USER: Final = "load"  # a super user: what rights do is tried elsewhere
CHANGED_S: Final = 30.0


class Files:
    """Certificates that everybody shows, signed by one of two CAs, both of which are believed."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self._authorities = [Authority(home / name, f"CA {name}") for name in ("before", "after")]
        self._next = 0
        self.ca, self.certificate, self.key = home / "both.pem", home / "all.pem", home / "all.key"
        self.ca.write_text("".join(authority.ca.read_text() for authority in self._authorities))
        self.master = home / "master.key"
        self.master.write_text(os.urandom(32).hex())
        self.master.chmod(0o600)
        self.renew()

    def renew(self) -> bytes:
        """Everybody has another certificate from here on, of the next CA; the bytes of it."""
        pair = self._authorities[self._next].issue("all")
        self._next += 1
        for new, file in ((pair.key, self.key), (pair.certificate, self.certificate)):
            copy = file.with_suffix(".new")
            shutil.copy(new, copy)
            copy.replace(file)
        return ssl.PEM_cert_to_DER_cert(self.certificate.read_text())

    @property
    def tls(self) -> TlsFiles:
        return TlsFiles(str(self.ca), str(self.certificate), str(self.key))

    @property
    def options(self) -> str:
        return "&".join(f"{name}={value}" for name, value in self.tls._asdict().items())


class SecuredCluster(RunningCluster):
    def __init__(self, home: Path, store: str, files: Files) -> None:
        self._files = files
        self._profile = home / "load.profile"
        self._password = ""
        self._key: dict[str, str] = {}
        super().__init__(
            home,
            3,
            f"{store}?{files.options}",
            {
                **SETTINGS,
                **{f"tls.{name}": value for name, value in files.tls._asdict().items()},
                "kafka.tls": True,
                "http.tls": True,
                "security.enabled": True,
                "security.super_users": f"User:{USER}",
                "security.master_key_file": str(files.master),
                "security.gateway_key_file": str(home / "node-1" / "data" / "gateway.key"),
            },
        )

    @property
    def bootstrap(self) -> str:
        """With the password of now."""
        return Secured(
            super().bootstrap,
            {
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(self._files.ca),
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": USER,
                "sasl.password": self._password,
            },
        )

    def address(self, node: ClusterNode) -> str:
        return f"tls://{node.bootstrap}?ca={self._files.ca}&profile={self._profile}"

    @property
    def gateway_bootstrap(self) -> str:
        return f"tls://{super().bootstrap}?ca={self._files.ca}"

    def start(self) -> None:
        """The nodes, then the user, by the master key; then the gateway, and the rest as ever."""
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait_until_ready()
        made = until(self._user_is_made, "the user is made", CHANGED_S)
        self._take(made)
        self._wait_until_agreed()
        assert self._gateway is not None
        url = self._gateway.start(self.gateway_bootstrap)
        self._url = url
        self.http = SecuredUrl(url, self._boto())

    # --- changes

    def change_password(self, load: ClusterLoad) -> None:
        """The clients are told first; what they have open goes on until the password is another one."""
        self._password = f"another {os.urandom(8).hex()}"
        before = self.address(self.nodes[0])
        sources = [load.producer.producer, load.reader.source, *(each.source for each in load.workers)]
        for source in sources:
            assert source is not None
            source.set_sasl_credentials(USER, self._password)
        file = self.home / "password"
        file.write_text(self._password + "\n")
        self._call(before, "user", "password", USER, "--new-password-file", str(file))
        self._write_profile()

    def change_access_key(self, load: ClusterLoad) -> None:
        """The second key is handed out before the first one is deleted."""
        address, old = self.address(self.nodes[0]), self._key["access_key_id"]
        self._key = json.loads(self._call(address, "user", "key", "create", USER, "--json"))
        self.http = SecuredUrl(self._url, self._boto())
        for each in load.sqs:
            each.sqs = client(self.http)
        load.wait_for_progress()
        self._call(address, "user", "key", "delete", old, "--yes")

    def change_certificates(self) -> None:
        """Nodes and gateway read them when they are told to, without a restart."""
        shown = self._files.renew()
        for node in self.nodes:
            os.kill(node.pid, signal.SIGHUP)
        for node in self.nodes:
            until(lambda node=node: _shown_at(node.bootstrap) == shown, "the node shows it", CHANGED_S)  # type: ignore[misc]
        gateway = self._url.removeprefix("https://")
        until(lambda: _shown_at(gateway) == shown, "the gateway shows it", CHANGED_S)

    # --- helpers

    def _user_is_made(self) -> dict[str, str] | None:
        if self._profile.exists():
            self._profile.unlink()
        address = f"tls://{self.nodes[0].bootstrap}?ca={self._files.ca}"
        arguments = ["--master-key", str(self._files.master), "user", "create", USER, "--json"]
        done = CliRunner().invoke(main, [*arguments, "--bootstrap", address])
        return json.loads(done.stdout) if done.exit_code == 0 else None

    def _take(self, made: dict[str, str]) -> None:
        self._password, self._key = made["password"], made
        self._write_profile()

    def _write_profile(self) -> None:
        self._profile.touch(0o600)
        self._profile.write_text(f"user = {json.dumps(USER)}\npassword = {json.dumps(self._password)}\n")

    def _boto(self) -> dict[str, Any]:
        return {
            "aws_access_key_id": self._key["access_key_id"],
            "aws_secret_access_key": self._key["secret_access_key"],
            "verify": str(self._files.ca),
        }

    def _call(self, address: str, *arguments: str) -> str:
        done = CliRunner().invoke(main, [*arguments, "--bootstrap", address])
        assert done.exit_code == 0, done.output
        return done.stdout


def _shown_at(address: str) -> bytes:
    host, _, port = address.rpartition(":")
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))


@contextmanager
def secured_cluster(directory: Path) -> Iterator[tuple[SecuredCluster, ClusterLoad]]:
    """Under the load of all clients; all promises are held against what is left when the block has ended."""
    files = Files(directory / "files")
    with etcd(tls=files.tls) as store:
        running = SecuredCluster(directory, store.url(), files)
        try:
            running.start()
            with ClusterLoad(running) as load:
                yield running, load
            load.check()
            running.stop()
        finally:
            running.kill()
    assert_equal_at_rest(running)
