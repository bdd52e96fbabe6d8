"""The command as a whole: help, exit codes, errors that say what to do, quick starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from postroad import __version__
from postroad.cli import main
from postroad.cli.root import COMMANDS


def test_help_lists_the_commands_and_the_exit_codes() -> None:
    shown = CliRunner().invoke(main, ["--help"]).output
    assert all(f"\n  {name}" in shown for name in COMMANDS)
    assert "0  done" in shown
    assert "2  called wrongly" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.output


def test_version_is_the_packages() -> None:
    assert __version__ in CliRunner().invoke(main, ["--version"]).output


def test_no_node_there_says_how_to_start_one() -> None:
    result = CliRunner().invoke(main, ["topic", "list", "--bootstrap", "127.0.0.1:1"])
    assert result.exit_code == 1
    assert result.stderr == (
        "postroad: nothing listens on 127.0.0.1:1: start one with `postroad serve`, "
        "or name another with --bootstrap\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["topic", "create"],
        ["topic", "create", "t", "--partitions", "0"],
        ["topic", "create", "t", "--config", "no-equals-sign"],
        ["topic", "alter", "t"],
        ["publish", "t", "--header", "no-equals-sign", "x"],
        ["publish", "t", "--key", "k", "--key-separator", ":", "x"],
        ["publish", "t", "--compression", "brotli", "x"],
        ["consume", "t", "--from", "sometime"],
        ["consume", "t", "--group", "g", "--from", "beginning"],
        ["group", "reset", "g"],
        ["serve", "--kafka", "nowhere"],
        ["serve", "--set", "nothing"],
        ["serve", "--config", "/no/such/file.toml"],
    ],
    ids=" ".join,
)
def test_wrong_calls_end_with_2_before_any_node_is_asked(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, arguments, env={"POSTROAD_BOOTSTRAP": "127.0.0.1:1"}).exit_code == 2


def test_starting_a_command_loads_neither_rich_nor_the_broker() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from postroad.cli import main; "
        "CliRunner().invoke(main, ['topic', 'list', '--bootstrap', '127.0.0.1:1']); "
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'rich', 'uvloop'}), "
        "'postroad.broker' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[] False\n"


def test_settings_are_written_as_toml_that_can_be_read_back(tmp_path: Path) -> None:
    first = CliRunner().invoke(main, ["config", "--kafka", "127.0.0.1:9999", "--set", "topics.partitions=3"])
    assert "port = 9999  # from command line" in first.output
    file = tmp_path / "postroad.toml"
    file.write_text(first.output)
    again = CliRunner().invoke(main, ["config", "--config", str(file), "--json"])
    assert f'"value": 9999,\n    "from": "{file}"' in again.output


def test_a_store_on_the_command_line_is_a_setting_and_is_checked() -> None:
    given = CliRunner().invoke(main, ["config", "--store", "etcd://10.0.0.1:2379/postroad"])
    assert 'store = "etcd://10.0.0.1:2379/postroad"  # from command line' in given.output
    wrong = CliRunner().invoke(main, ["serve", "--store", "10.0.0.1:2379"])
    assert wrong.exit_code == 1
    assert "cluster.store = '10.0.0.1:2379'" in wrong.stderr
    assert "it must be an address such as etcd://" in wrong.stderr


def test_wrong_setting_is_named_with_the_one_that_was_meant() -> None:
    result = CliRunner().invoke(main, ["config", "--set", "topics.partition=3"])
    assert result.exit_code == 1
    assert "topics.partitions" in result.stderr
