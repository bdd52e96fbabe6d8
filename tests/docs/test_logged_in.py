"""What the documents show of a node with logins works as printed: its first user, access keys, a backup."""

from __future__ import annotations

import re
from pathlib import Path

from postroad.testing import node

from .operator import Operator, block_of, lines_of

HERE = "tests/docs/test_logged_in.py"
KEY = "PRAKXXXXXXXXXXXXXXXX"


def test_blocks_for_a_node_with_logins_work_as_printed(tmp_path: Path) -> None:
    with node({"security.enabled": True}) as served:
        (tmp_path / "postroad-data").symlink_to(served.data_dir)
        operator = Operator(tmp_path, served.bootstrap)
        users, keys, backup = (
            lines_of(block_of(document, HERE, contains))
            for document, contains in [
                ("docs/security.md", "user create admin"),
                ("docs/security.md", "user key create"),
                ("docs/backup.md", "backup create"),
            ]
        )
        password = told(operator.do(users[0]))["password"]
        profile = tmp_path / "admin.toml"
        profile.touch(0o600)
        profile.write_text(f'bootstrap = "{served.bootstrap}"\nuser = "admin"\npassword = "{password}"\n')
        printed = [operator.do(line) for line in users[1:]]
        assert "yes" in printed[-1]
        old = told(printed[1])["access_key_id"]
        operator.names[KEY] = new = told(operator.do(keys[0]))["access_key_id"]
        assert new in operator.do("postroad user key list shop")
        for line in keys[1:]:
            operator.do(line)
        left = operator.do("postroad user key list shop")
        assert old in left
        assert new not in left
        for line in backup:
            operator.do(line)
        assert "whole" in operator.do("postroad backup verify backups")


def told(printed: str) -> dict[str, str]:
    """What a command says line by line, as `name: value`."""
    return dict(re.findall(r"^(\w+): (\S+)$", printed, re.MULTILINE))
