"""`postroad log`: what a stopped node's files hold, and whether all of it holds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from postroad.cli import main
from postroad.testing import node

from .conftest import read_json, read_lines


def call(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a stopped node left: ten messages in two batches, the second compressed."""
    home = tmp_path_factory.mktemp("node")
    with node(directory=home) as running:
        options = ["-b", running.bootstrap]
        call("publish", "orders", *"01234", "-k", "key", *options)
        call("publish", "orders", *"56789", "-z", "zstd", *options)
        call("subscription", "create", "workers", "--topic", "orders", "--start", "earliest", *options)
    return home / "data"


@pytest.fixture
def data(original: Path, tmp_path: Path) -> str:
    """A copy of it that the test may damage."""
    return str(shutil.copytree(original, tmp_path / "data"))


def segment(data: str) -> Path:
    (found,) = [path for path in Path(data).glob("logs/*/*.log") if path.stat().st_size]
    return found


def test_whole_directory_is_verified(data: str) -> None:
    result = call("log", "verify", "--data", data)
    assert result.stderr.endswith("no message is damaged\n")
    assert read_json(call("log", "verify", "orders/0", "--data", data, "--json").stdout) == {
        "partitions": 1,
        "findings": [],
    }


def test_flipped_bit_is_found_and_placed(data: str) -> None:
    path = segment(data)
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    result = call("log", "verify", "--data", data, "--json", code=1)
    (finding,) = [found for found in read_json(result.stdout)["findings"] if not found["harmless"]]
    assert (finding["topic"], finding["partition"], finding["byte"]) == ("orders", 0, 0)
    assert finding["file"] == path.name
    assert "1 damaged" in call("log", "verify", "--data", data, code=1).stderr


def test_missing_index_is_no_damage(data: str) -> None:
    for path in Path(data).glob("logs/*/*.index"):
        path.write_bytes(b"nonsense" * 4)
    call("log", "verify", "--data", data)


def test_batches_are_dumped_as_they_lie(data: str) -> None:
    batches = read_json(call("log", "dump", "orders", "--data", data, "--json").stdout)["batches"]
    assert [(batch["base_offset"], batch["last_offset"]) for batch in batches] == [(0, 4), (5, 9)]
    assert [batch["compression"] for batch in batches] == ["none", "zstd"]
    assert batches[1]["byte"] == batches[0]["bytes"]
    shown = call("log", "dump", "orders/0", "--from", "7", "--data", data).stdout.splitlines()
    assert shown[0].startswith("orders/0  ")
    assert len(shown) == 3, "a line with the place, the columns, one batch"


def test_records_are_dumped_as_consume_writes_them(data: str) -> None:
    records = read_lines(call("log", "dump", "orders", "--records", "--from", "3", "--data", data).stdout)
    assert [record["value"] for record in records] == ["3", "4", "5", "6", "7", "8", "9"]
    assert records[0]["key"] == "key"


def test_ledger_is_dumped_when_it_is_asked_for(data: str) -> None:
    (record,) = read_lines(call("log", "dump", "orders", "--ledger", "--records", "--data", data).stdout)
    assert record["key"].startswith('["queue","workers",')
    assert record["value"] == '{"generation":1,"start":0}'
    said = call("log", "dump", "__consumer_offsets", "--ledger", "--data", data, code=1).stderr
    assert said.startswith("postroad: no subscription has ever begun with __consumer_offsets")


def test_damaged_ledger_is_found_and_placed(data: str) -> None:
    (path,) = [found for found in Path(data).glob("logs/*/ledger/*.log") if found.stat().st_size]
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    result = call("log", "verify", "orders", "--data", data, "--json", code=1)
    found = [each for each in read_json(result.stdout)["findings"] if not each["harmless"]]
    assert {(each["topic"], each["partition"]) for each in found} == {("orders", 0)}
    assert f"ledger/{path.name}" in {each["file"] for each in found}


def test_damaged_batch_ends_the_dump_with_an_error(data: str) -> None:
    path = segment(data)
    path.write_bytes(path.read_bytes()[:-1])
    assert "postroad log verify" in call("log", "dump", "orders", "--data", data, code=1).stderr


def test_topic_that_is_not_stored_is_answered_with_those_that_are(data: str) -> None:
    said = call("log", "dump", "order", "--data", data, code=1).stderr
    assert said.startswith("postroad: nothing is stored of order; there are: ")
    assert said.endswith("orders\n")


def test_running_node_keeps_its_files_to_itself(tmp_path: Path) -> None:
    with node(directory=tmp_path) as running:
        result = call("log", "verify", "--data", str(running.data_dir), code=1)
        assert f"in use by another postroad process (pid {running.pid})" in result.stderr


def test_other_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    assert "is not a node's data directory" in call("log", "verify", "--data", str(tmp_path), code=1).stderr
    assert list(tmp_path.iterdir()) == []


def test_verifying_leaves_the_directory_as_it_was_for_the_next_start(data: str) -> None:
    call("log", "verify", "--data", data)
    assert (Path(data) / "clean-shutdown").exists()
    with node(directory=Path(data).parent) as running:
        assert call("consume", "orders", "-n", "1", "-b", running.bootstrap).stdout == "0\n"


def test_data_directory_may_be_named_as_for_the_node(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROAD_DATA_DIR", data)
    assert "no message is damaged" in call("log", "verify").stderr
    assert call("log", "dump", "orders").stdout.startswith(f"orders/0  {data}")
