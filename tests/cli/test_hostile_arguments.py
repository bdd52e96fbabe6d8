"""Whatever is given on the command line, the answer is a sentence: no command ends with a traceback."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from postroad.cli import main
from postroad.cli.command import Command as CheckedCommand
from postroad.testing import Node

from .conftest import Command, read_lines

NOT_UTF8 = "\udcff"  # as Python hands over the byte 0xff
HOSTILE = [
    "",
    "-1",
    "0",
    "99999999999999999999999",
    "9" * 5000,
    "nan",
    "1e308",
    NOT_UTF8,
    f"a={NOT_UTF8}",
    f"{NOT_UTF8}=a",
    "a\0b",
    "=",
    "é" * 300,
    "99999999999d",
    "9" * 5000 + "d",
    "1960-01-01",
    "9999-12-31T23:59:59",
]
# A call of each command that talks to a node, to which one hostile value is added at a time.
CALLS = {
    "topic create": ["new"],
    "topic list": [],
    "topic describe": ["t"],
    "topic alter": ["t"],
    "topic delete": ["gone", "--yes"],
    "publish": ["t", "m"],
    "consume": ["t", "--count", "1"],
    "group list": [],
    "group describe": ["g"],
    "group reset": ["g", "--to", "end"],
    "group delete": ["gone", "--yes"],
    "subscription create": ["new", "--topic", "t"],
    "subscription alter": ["s"],
    "subscription list": [],
    "subscription describe": ["s"],
    "subscription delete": ["gone", "--yes"],
    "subscription peek": ["s"],
    "subscription purge": ["s", "--yes"],
    "subscription seek": ["s", "--to", "end"],
    "subscription consume": ["s", "--max", "1", "--wait", "10ms"],
    "redrive": ["s"],
    "bench": ["--messages", "1", "--latency-messages", "1"],
    "config": [],
    "config client": ["--for", "java"],
    "log verify": [],
    "log dump": ["t"],
}
# Names would be looked up, and data directories be made; `messages` of bench would be sent.
LEFT_OUT = {"bootstrap", "data", "kafka", "http", "messages", "latency_messages"}


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    if command.invoke_without_command:
        yield " ".join(path), command
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


COMMANDS = dict(leaves(main))


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_checks_its_arguments_as_the_others_do(path: str) -> None:
    assert isinstance(COMMANDS[path], CheckedCommand), "declare it with cls=Command"


def hostile_calls(command: click.Command, sane: list[str]) -> Iterator[list[str]]:
    for parameter in command.params:
        if parameter.name in LEFT_OUT:
            continue
        for value in HOSTILE:
            if isinstance(parameter, click.Argument):
                yield [*sane[1:], "--", value]
            elif not parameter.is_flag and not parameter.hidden:  # type: ignore[attr-defined]
                yield [*sane, parameter.opts[-1], value]


@pytest.fixture(scope="module")
def filled(postroad_session: Node) -> dict[str, str]:
    """A topic, a group and a subscription to talk about."""
    environment = {"POSTROAD_BOOTSTRAP": postroad_session.bootstrap}
    for line in (
        "topic create t --if-not-exists",
        "publish t a b",
        "consume t --group g --count 1",
        "subscription create s --topic t",
        "publish t c",
    ):
        assert CliRunner().invoke(main, line.split(), env=environment).exit_code == 0
    return environment


@pytest.mark.parametrize("path", CALLS)
def test_no_argument_ends_a_command_with_a_traceback(path: str, filled: dict[str, str]) -> None:
    wrong = []
    for arguments in hostile_calls(COMMANDS[path], CALLS[path]):
        result = CliRunner().invoke(main, [*path.split(), *arguments], env=filled)
        shown = [argument[:60] for argument in arguments]
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            wrong.append((shown, repr(result.exception)))
        elif "version of the API" in result.output or "unpack" in result.output:
            wrong.append((shown, result.output))
    assert not wrong


@pytest.mark.parametrize("path", sorted(COMMANDS.keys() - CALLS.keys()))
def test_arguments_of_servers_and_pipelines_are_read_without_a_traceback(path: str) -> None:
    for arguments in hostile_calls(COMMANDS[path], []):
        try:
            COMMANDS[path].make_context(path, arguments)
        except click.ClickException as error:
            assert error.exit_code == 2  # noqa: PT017 (anything else is the failure)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("", "at least one"),
        ("127.0.0.1:99999", "not host:port"),
        ("127.0.0.1:" + "9" * 5000, "not host:port"),
        (":9092", "not host:port"),
        ("[::1", "not host:port"),
        ("a..b:1", "not host:port"),
        ("x" * 70 + ":1", "not host:port"),
        ("http://127.0.0.1:9092", "not host:port"),
        (f"{NOT_UTF8}:9092", "not UTF-8"),
    ],
)
def test_address_that_can_be_none_is_a_wrong_call(address: str, reason: str) -> None:
    result = CliRunner().invoke(main, ["topic", "list", "--bootstrap", address])
    assert result.exit_code == 2
    assert reason in result.stderr


def test_number_out_of_its_range_is_answered_with_the_range() -> None:
    result = CliRunner().invoke(main, ["topic", "create", "t", "--partitions", "99999999999"])
    assert result.exit_code == 2
    assert "'99999999999' is not a whole number from 1 to 2147483647" in result.stderr


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", 'is not an object with a "value"'),
        ('{"value": 1, "headers": [["only a name"]]}', 'headers are [["name", "value"], …]'),
        ('{"value": 1, "headers": "x"}', 'headers are [["name", "value"], …]'),
        ('{"value": 1, "timestamp": 99999999999999999999}', "timestamp 99999999999999999999 is not"),
        ('{"value": 1, "timestamp": -5}', "timestamp -5 is not"),
        ('{"value": 1, "partition": 9999999999}', "partition 9999999999 is not"),
        ('{"value": {"base64": "?"}}', "is not a message"),
    ],
)
def test_message_that_is_no_message_is_told_so(run: Command, name: str, message: str, reason: str) -> None:
    assert reason in run("publish", name, "--json", "--keep-partitions", message, code=1).stderr


def test_message_without_a_time_can_be_published_again(run: Command, name: str) -> None:
    run("publish", name, "--json", '{"value": "x", "timestamp": -1}')
    assert run("consume", name).stdout == "x\n"


def test_key_header_and_value_may_be_any_bytes(run: Command, name: str) -> None:
    run("publish", name, "--key", NOT_UTF8, "--header", f"h={NOT_UTF8}", NOT_UTF8)
    (message,) = read_lines(run("consume", name, "--json").stdout)
    assert message["key"] == message["value"] == {"base64": "/w=="}
    assert message["headers"] == [["h", {"base64": "/w=="}]]


@pytest.mark.parametrize("start", ["1960-01-01", "99999d", "9999-12-31T23:59:59"])
def test_time_before_1970_is_the_beginning_and_one_far_ahead_the_end(
    run: Command, name: str, start: str
) -> None:
    run("publish", name, "x")
    expected = "" if start.startswith("9999-") else "x\n"
    assert run("consume", name, "--from", start).stdout == expected
