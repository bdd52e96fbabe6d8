"""`postroad user` and `postroad acl`, and who a command is: by options, a profile, or the master key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from postroad.cli import main
from tests.broker.secured import PASSWORD, Secured, secured_node

Command = Callable[..., Result]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("secured")) as running:
        yield running


def invoke(*arguments: str, code: int = 0, profile: Path | None = None, stdin: str | None = None) -> Result:
    environment = {"POSTROAD_PROFILE": str(profile)} if profile else {}
    result = CliRunner().invoke(main, list(arguments), env=environment, input=stdin)
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


def profile_of(directory: Path, node: Secured, user: str, password: str) -> Path:
    path = directory / f"{user}.toml"
    lines = {"bootstrap": node.bootstrap, "user": user, "password": password}
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items()))
    path.chmod(0o600)
    return path


@pytest.fixture
def admin(tmp_path: Path, node: Secured) -> Command:
    path = profile_of(tmp_path, node, "admin", PASSWORD)

    def run(*arguments: str, **kwargs: Any) -> Result:
        return invoke(*arguments, profile=path, **kwargs)

    return run


def test_one_who_may_write_and_one_who_may_read_in_four_commands(
    admin: Command, node: Secured, tmp_path: Path
) -> None:
    writer = json.loads(admin("user", "create", "shop", "--json").output)
    reader = json.loads(admin("user", "create", "books", "--json").output)
    admin("topic", "create", "orders")
    admin("acl", "allow", "shop", "--produce", "orders")
    admin("acl", "allow", "books", "--consume", "ord*")
    shop = profile_of(tmp_path, node, "shop", writer["password"])
    books = profile_of(tmp_path, node, "books", reader["password"])
    invoke("publish", "orders", "one", profile=shop)
    assert invoke("consume", "orders", profile=books).output.strip() == "one"
    refused = invoke("publish", "orders", "x", profile=books, code=1)  # may not even make up ids for messages
    assert "Not authorized" in refused.output
    assert "Not authorized for this topic" in invoke("consume", "orders", profile=shop, code=1).output


def test_the_master_key_makes_the_first_user(node: Secured, tmp_path: Path) -> None:
    key = tmp_path / "master.key"
    key.write_text(node.node.security.master_key.hex())
    arguments = ["--master-key", str(key), "user", "create", "first", "-b", node.bootstrap]
    assert "password: " in invoke(*arguments).output


def test_an_admin_who_changes_his_own_password_is_told_it(
    admin: Command, node: Secured, tmp_path: Path
) -> None:
    try:
        told = json.loads(admin("user", "password", "admin", "--json").output)
        with_new = profile_of(tmp_path, node, "admin", told["password"])
        assert "admin" in invoke("user", "list", profile=with_new).output
    finally:
        node.add_user("admin")


def test_a_user_logs_in_with_a_password_file(admin: Command, node: Secured, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of my own\n")
    assert "password:" not in admin("user", "create", "filed", "--new-password-file", str(secret)).output
    as_user = ["--user", "filed", "--password-file", str(secret)]
    invoke(*as_user, "topic", "list", "-b", node.bootstrap)
    secret.write_text("another\n")
    refused = invoke(*as_user, "topic", "list", "-b", node.bootstrap, code=1)
    assert "The user or the password is wrong" in refused.output


def test_without_a_login_a_secured_node_hangs_up(node: Secured) -> None:
    invoke("topic", "list", "-b", node.bootstrap, "--timeout", "2", code=1)


def test_users_are_listed_changed_and_deleted(admin: Command) -> None:
    admin("user", "create", "carl")
    users = {each["user"]: each["mechanisms"] for each in json.loads(admin("user", "list", "--json").output)}
    assert users["carl"] == "SCRAM-SHA-256, SCRAM-SHA-512"
    assert "password: " in admin("user", "password", "carl").output
    assert "there is a user" in admin("user", "create", "carl", code=1).output
    admin("user", "delete", "carl", "--yes")
    assert "there is no user" in admin("user", "delete", "carl", "--yes", code=1).output
    assert "there is no user" in admin("user", "password", "carl", code=1).output


def test_a_new_user_has_an_access_key_for_sqs_clients(admin: Command, node: Secured) -> None:
    made = json.loads(admin("user", "create", "fred", "--json").output)
    assert list(made) == ["user", "password", "access_key_id", "secret_access_key"]
    assert len(made["secret_access_key"]) == 40
    stored = node.node.image.users["fred"].keys
    assert list(stored) == [made["access_key_id"]]
    assert made["secret_access_key"] not in repr(stored)
    printed = admin("user", "create", "gina").output
    assert re.search(r"password: \S+\naccess_key_id: PRAK\S{16}\nsecret_access_key: \S{40}\n", printed)


def test_access_keys_are_changed_one_after_the_other(admin: Command) -> None:
    first = json.loads(admin("user", "create", "hugo", "--json").output)["access_key_id"]
    second = json.loads(admin("user", "key", "create", "hugo", "--json").output)["access_key_id"]
    admin("user", "key", "disable", first)

    def states() -> dict[str, str]:
        listed = json.loads(admin("user", "key", "list", "hugo", "--json").output)
        return {each["access_key"]: each["state"] for each in listed}

    assert states() == {first: "disabled", second: "enabled"}
    admin("user", "key", "enable", first)
    assert states() == {first: "enabled", second: "enabled"}
    admin("user", "key", "delete", first, "--yes")
    assert states() == {second: "enabled"}
    assert second in admin("user", "key", "list").output
    assert "There is no access key" in admin("user", "key", "delete", first, "--yes", code=1).output
    assert "There is no access key" in admin("user", "key", "disable", first, code=1).output
    assert "There is no user" in admin("user", "key", "create", "nobody", code=1).output
    admin("user", "delete", "hugo", "--yes")
    assert states() == {}


def test_a_password_file_leaves_the_access_key(admin: Command, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of my own\n")
    made = json.loads(admin("user", "create", "ida", "--new-password-file", str(secret), "--json").output)
    assert list(made) == ["user", "access_key_id", "secret_access_key"]


def test_check_names_the_rule_that_decides(admin: Command) -> None:
    admin("acl", "allow", "ann", "--topic", "books*", "--operation", "write")
    admin("acl", "deny", "ann", "--produce", "books-rare")
    found = admin("acl", "check", "ann", "write", "books-old").output
    assert found == "yes: ALLOW User:ann Write on topic books*\n"
    found = admin("acl", "check", "ann", "write", "books-rare", code=1).output
    assert found == "no: DENY User:ann Write on topic books-rare\n"
    assert admin("acl", "check", "ann", "read", "books-old", code=1).output == "no: no rule allows it\n"
    found = admin("acl", "check", "admin", "read", "books-old").output
    assert found == "yes: User:admin is a super user\n"


def test_a_queue_is_five_rules(admin: Command) -> None:
    admin("acl", "allow", "cleo", "--queue", "tasks*")
    listed = json.loads(admin("acl", "list", "cleo", "--json").output)
    assert {(each["operation"], each["resource"]) for each in listed} == {
        *(("create", "topic tasks*"), ("write", "topic tasks*"), ("read", "topic tasks*")),
        *(("read", "group tasks*"), ("alter-configs", "group tasks*")),
    }
    admin("acl", "remove", "cleo", "--queue", "tasks*")
    assert json.loads(admin("acl", "list", "cleo", "--json").output) == []


def test_rules_are_listed_and_removed(admin: Command) -> None:
    admin("acl", "allow", "bob", "--group", "g", "--operation", "read", "--from", "10.0.0.1")
    listed = json.loads(admin("acl", "list", "bob", "--json").output)
    assert listed == [
        {"rule": "allow", "user": "bob", "operation": "read", "resource": "group g", "from": "10.0.0.1"}
    ]
    removed = ["acl", "remove", "bob", "--group", "g", "--operation", "read"]
    assert "no such rule" in admin(*removed, code=1).output
    admin(*removed, "--from", "10.0.0.1")
    assert json.loads(admin("acl", "list", "bob", "--json").output) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["acl", "allow", "ann"],
        ["acl", "allow", "ann", "--topic", "t"],
        ["acl", "allow", "ann", "--topic", "t", "--operation", "dance"],
        ["acl", "allow", "ann", "--group", "g", "--operation", "write"],
    ],
)
def test_rules_that_say_nothing_are_refused(admin: Command, arguments: list[str]) -> None:
    admin(*arguments, code=2)


@pytest.mark.parametrize(
    ("text", "complaint"), [("user = 1", "none of"), ("colour = 'red'", "none of"), ("=", "no TOML")]
)
def test_a_wrong_profile_is_named_without_what_stands_in_it(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    assert complaint in invoke("topic", "list", profile=path, code=2).output


def test_a_user_without_a_password_is_refused() -> None:
    assert "has no password" in invoke("--user", "shop", "topic", "list", code=2).output
