"""Certificates from the command line: nodes and clients that have them come together, others don't."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from postroad.cli.root import main
from postroad.client import Client
from postroad.errors import PostroadError
from postroad.testing import node
from postroad.testing.process import Setting


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def refused(*arguments: str | Path) -> str:
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code != 0
    return done.output


async def test_a_node_and_a_client_come_together(tmp_path: Path) -> None:
    """The steps of docs/security.md."""
    certs = tmp_path / "certs"
    run("cert", "make", certs, "--host", "kafka.example.com", "--user", "shop")
    settings: dict[str, Setting] = {
        "kafka.tls": True,
        "kafka.authentication": "certificate",
        "tls.certificate": str(certs / "node.pem"),
        "tls.key": str(certs / "node.key"),
        "tls.ca": str(certs / "ca.pem"),
    }
    with node(settings) as running:
        bootstrap = f"tls://{running.bootstrap}?ca={certs / 'ca.pem'}"
        async with Client(f"{bootstrap}&certificate={certs / 'shop.pem'}&key={certs / 'shop.key'}") as client:
            assert await client.nodes() == [1]
        with pytest.raises(PostroadError):
            async with Client(bootstrap, timeout_s=5):
                pass


def test_a_ca_is_made_once_and_certificates_anew(tmp_path: Path) -> None:
    run("cert", "make", tmp_path)
    ca, first = (tmp_path / "ca.pem").read_bytes(), (tmp_path / "node.pem").read_bytes()
    assert "made a CA" not in run("cert", "make", tmp_path)
    assert (tmp_path / "ca.pem").read_bytes() == ca
    assert (tmp_path / "node.pem").read_bytes() != first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.key", "ca.pem", "node.key", "node.pem"]


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    run("cert", "make", tmp_path / "certs", "--user", "shop")
    for key in (tmp_path / "certs").glob("*.key"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_how_long_certificates_are_valid_is_shown(tmp_path: Path) -> None:
    run("cert", "make", tmp_path, "--days", "30")
    assert " 29" in run("cert", "show", tmp_path / "node.pem")
    assert '"days_left": 29' in run("cert", "show", tmp_path / "node.pem", "--json")
    assert "no PEM certificate" in refused("cert", "show", tmp_path / "node.key")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--user", "ca"),
        ("--user", "../x"),
        ("--user", "a/b"),
        ("--user", "a\nb"),
        ("--host", "a,DNS:b"),
        ("--host", "x y"),
    ],
)
def test_names_that_would_be_more_than_names_are_refused(tmp_path: Path, arguments: tuple[str, str]) -> None:
    assert "can't be the name of a" in refused("cert", "make", tmp_path, *arguments)
    assert not list(tmp_path.iterdir())


def test_a_ca_without_its_key_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("somebody's")
    assert "choose another directory" in refused("cert", "make", tmp_path)
    assert (tmp_path / "ca.pem").read_text() == "somebody's"
