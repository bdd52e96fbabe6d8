"""The documents say what is so: links lead somewhere, commands exist, tables are current."""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib import metadata
from pathlib import Path

import click
import pytest

from postroad.broker import api
from postroad.broker.dispatch import Api
from postroad.broker.later import Later
from postroad.cli.root import main
from postroad.wire import produce as produce_codec

from .markdown import ROOT, anchors, commands, documents, links, prose, rows

DOCUMENTS = documents()
HANDLERS = [handler.load() if isinstance(handler, Later) else handler for handler in api.ALL]
README = (ROOT / "README.md").read_text()
COMPATIBILITY = (ROOT / "docs/kafka-compatibility.md").read_text()


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    broken = [link for link in links(document.read_text()) if not _resolves(document, link)]
    assert not broken


def _resolves(document: Path, link: str) -> bool:
    if link.startswith(("https://", "http://")):
        return True  # others' pages are not asked: tests run offline
    place, _, fragment = link.partition("#")
    target = document.parent / place if place else document
    return target.exists() and (not fragment or fragment in anchors(target.read_text()))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_files_that_are_named_exist(document: Path) -> None:
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|toml|sh|txt))`", prose(document.read_text()))
    roots = (ROOT, ROOT / "src/postroad", document.parent)
    assert not [name for name in named if not any((root / name).exists() for root in roots)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_commands_and_their_options_exist(document: Path) -> None:
    for line in commands(document.read_text()):
        for arguments in _calls(line):
            _parse(arguments, line)


def _calls(line: str) -> list[list[str]]:
    """The arguments of each `postroad` in a line, also behind a pipe."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    calls: list[list[str]] = []
    words: list[str] = []
    for word in [*lexer, "|"]:
        if word[0] in "|;&<>":
            calls += [words[1:]] if words[:1] == ["postroad"] else []
            words = []
        else:
            words.append(word)
    return calls


def _parse(arguments: list[str], line: str) -> None:
    """Follow the words to the command and let it read its options, without running anything."""
    command: click.Command = main
    context = click.Context(command, info_name="postroad")
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        found = command.get_command(context, arguments[0])
        assert found is not None, f"there is no command {arguments[0]!r}: {line}"
        command, arguments = found, arguments[1:]
        context = click.Context(command, parent=context, info_name=command.name)
    try:
        command.make_parser(context).parse_args(list(arguments))
    except click.UsageError as error:
        pytest.fail(f"{line}: {error.format_message()}")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_make_verbs_exist(document: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    text = document.read_text()
    verbs = {verb for line in commands(text) for verb in re.findall(r"^make (\w+)", line)}
    verbs |= {verb for span in re.findall(r"`make ((?:[a-z]+ ?)+)", prose(text)) for verb in span.split()}
    assert not [verb for verb in sorted(verbs) if not re.search(rf"^{verb}:", makefile, re.MULTILINE)]


def versions_of(handler: Api) -> str:
    lowest, highest = handler.VERSIONS
    if handler.KEY == produce_codec.KEY:
        lowest = produce_codec.MIN_VERSION  # advertised from 0, answered from here
    return f"{lowest}–{highest}" if lowest != highest else str(lowest)


def title_of(handler: Api) -> str:
    """`Produce` of a docstring that begins `Produce (0), versions …`."""
    title, key = re.match(r"(\w+) \((\d+)\)", handler.__doc__ or "").groups()  # type: ignore[union-attr]
    assert int(key) == handler.KEY
    return str(title)


def test_table_of_apis_is_what_the_node_answers() -> None:
    documented = [row[:3] for row in rows(COMPATIBILITY, "key", "API", "versions", "what it does here")]
    handlers = sorted(HANDLERS, key=lambda handler: handler.KEY)
    assert documented == [[str(h.KEY), title_of(h), versions_of(h)] for h in handlers]


def test_handlers_say_the_versions_that_they_answer() -> None:
    for handler in HANDLERS:
        said = re.search(r"versions? (\d+(?:–\d+)?)", handler.__doc__ or "")
        assert said, handler
        assert said[1] == versions_of(handler), handler


def test_readme_names_every_api() -> None:
    named = [name for row in rows(README, "for", "APIs") for name in row[1].split(", ")]
    assert sorted(named) == sorted(title_of(handler) for handler in HANDLERS)
    assert f"{len(api.ALL)} APIs" in (ROOT / "CHANGELOG.md").read_text()


def test_versions_of_clients_are_those_of_the_tests() -> None:
    table = rows(README, "client", "version in the tests", "what is tested")
    versions = {row[0].split(" ")[0]: row[1] for row in table}
    pinned = dict(line.split("==") for line in _lines("constraints.txt") if ";" not in line)
    assert versions.pop("kcat").startswith("Debian's")
    assert versions == {name: pinned[name] for name in versions}


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    needed = [*project["dependencies"], *(requirement for extra in extras for requirement in extra)]
    names = {re.split(r"[\[<>=; ]", requirement)[0] for requirement in needed} - {"postroad"}
    reasons = (ROOT / "docs/adr/0002-dependencies.md").read_text()
    rows_only = "\n".join(line for line in reasons.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`([\w-]+)`", rows_only)) == names


def test_package_says_who_made_it_and_names_no_page_that_is_not_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["authors"] == [{"name": "The Postroad developers"}]
    assert project["license"] == "Apache-2.0"
    assert "urls" not in project, "say here which page it is, once the project has one"


def test_changelog_knows_this_version() -> None:
    assert f"## {metadata.version('postroad')}" in (ROOT / "CHANGELOG.md").read_text()


def _lines(name: str) -> list[str]:
    return (ROOT / name).read_text().splitlines()
