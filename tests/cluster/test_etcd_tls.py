"""etcd over TLS, which asks nodes for a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.broker.runtime import SystemRuntime
from postroad.cluster.store import Put
from postroad.cluster.store_address import EtcdAddress, TlsFiles, parse
from postroad.errors import ConfigurationError, StoreUnavailable
from postroad.testing.etcd import Etcd, etcd
from tests.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("etcd"))


@pytest.fixture(scope="module")
def files(authority: Authority) -> TlsFiles:
    pair = authority.issue("both")
    return TlsFiles(str(authority.ca), str(pair.certificate), str(pair.key))


@pytest.fixture(scope="module")
def server(files: TlsFiles) -> Iterator[Etcd]:
    with etcd(tls=files) as running:
        yield running


def test_addresses_with_tls_name_their_files() -> None:
    found = parse("etcd+tls://a:1,b/x?ca=/c%26a.pem&certificate=c.pem&key=k.pem")
    assert found == EtcdAddress(("a:1", "b:2379"), "/x/", TlsFiles("/c&a.pem", "c.pem", "k.pem"))
    assert parse("etcd+tls://a") == EtcdAddress(("a:2379",), "/postroad/", TlsFiles())
    for wrong in ("etcd+tls://a?cert=x", "etcd+tls://a?ca=", "etcd+tls://a?key=k", "etcd+tls://"):
        with pytest.raises(ValueError, match=r"etcd(\+tls)?://"):
            parse(wrong)


async def test_a_node_with_a_certificate_reads_and_writes(server: Etcd, files: TlsFiles) -> None:
    url = f"{server.url('/test')}?ca={files.ca}&certificate={files.certificate}&key={files.key}"
    store = await SystemRuntime().open_store(Path("unused"), url)
    await store.commit([], [Put("a", b"1")])
    found = await store.get("a")
    assert found is not None
    assert found.value == b"1"
    await store.close()


async def test_who_shows_no_certificate_is_refused(server: Etcd, files: TlsFiles) -> None:
    store = await SystemRuntime().open_store(Path("unused"), f"{server.url('/test')}?ca={files.ca}")
    with pytest.raises(StoreUnavailable):
        await store.get("a")
    await store.close()


async def test_an_etcd_that_others_have_signed_is_refused(server: Etcd, tmp_path: Path) -> None:
    elsewhere = Authority(tmp_path / "elsewhere", "Another CA")
    store = await SystemRuntime().open_store(Path("unused"), f"{server.url('/test')}?ca={elsewhere.ca}")
    with pytest.raises(StoreUnavailable):
        await store.get("a")
    await store.close()


async def test_a_file_that_is_missing_is_named(server: Etcd) -> None:
    with pytest.raises(ConfigurationError, match=r"no-such\.pem"):
        await SystemRuntime().open_store(Path("unused"), f"{server.url('/test')}?ca=no-such.pem")
