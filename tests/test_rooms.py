"""The rooms keep to what ARCHITECTURE.md says of them."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "postroad"
PURE = (
    "errors",
    "metrics",
    "wire",
    "log",
    "groups",
    "queues",
    "cluster",
    "replication",
    "transactions",
    "security",
    "filters",
    "schemas",
)
ADAPTERS = {  # each beside its port; `store.py` is the port of the coordination store
    "log/disk.py",
    "cluster/store.py",
    "cluster/sqlite.py",
    "cluster/sqlite_file.py",
    "cluster/etcd.py",
    "cluster/etcd_gateway.py",
    "cluster/etcd_watch.py",
    "cluster/remote.py",
    "cluster/store_server.py",
}
IMPURE_NODES = (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef)
IMPURE_CALLS = {"open", "input", "print", "exec", "eval", "breakpoint"}


def pure_files() -> list[Path]:
    files = (path for room in PURE for path in sorted((SOURCE / room).rglob("*.py")))
    return [path for path in files if path.relative_to(SOURCE).as_posix() not in ADAPTERS]


def test_pure_rooms_neither_wait_nor_open_files() -> None:
    for path in pure_files():
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            pure = not isinstance(node, IMPURE_NODES) and called not in IMPURE_CALLS
            assert pure, f"{path.relative_to(ROOT)} waits or does I/O: {ast.unparse(node)[:80]}"


# They run code, or can be made to, by the bytes they read. Spark hands its own functions to its workers.
DANGEROUS_MODULES = {"pickle", "cloudpickle", "marshal", "shelve", "yaml", "dill"}
DANGEROUS_CALLS = {"eval", "exec", "compile"}


def test_nothing_reads_a_format_that_can_run_code() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] in ("spark", "pipelines"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found = {name.partition(".")[0] for name in names} & DANGEROUS_MODULES
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            assert not found, f"{path.relative_to(ROOT)} imports {found}"
            assert called not in DANGEROUS_CALLS, f"{path.relative_to(ROOT)}: {ast.unparse(node)[:80]}"


CHANCE = {"Random"}  # the type; who draws is handed a generator by the runtime
SHELLS = {
    *("broker/child_process.py", "broker/gateway_process.py", "broker/runtime.py", "broker/serve.py"),
    "broker/several_nodes.py",
}
TOUCHES_FILES = {
    *("chmod", "glob", "is_dir", "is_file", "iterdir", "mkdir", "read_bytes", "read_text", "rglob", "rmdir"),
    *("stat", "symlink_to", "touch", "write_bytes", "write_text"),
}


def test_the_broker_takes_chance_and_files_from_its_runtime() -> None:
    for path in sorted((SOURCE / "broker").rglob("*.py")):
        if path.relative_to(SOURCE).as_posix() in SHELLS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path.relative_to(ROOT)}: {ast.unparse(node)[:80]}"
            if isinstance(node, ast.ImportFrom) and node.module == "random":
                assert {name.name for name in node.names} <= CHANCE, where
            elif isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                assert called not in TOUCHES_FILES, where
                assert not (called == "open" and isinstance(node.func, ast.Name)), where


PLANTED = [
    ("groups/offsets.py", "postroad.wire.batch"),
    ("groups/offsets.py", "postroad.log.segment"),
    ("queues/ledger.py", "postroad.wire.records"),
    ("queues/ledger.py", "postroad.groups.share"),
    ("queues/ledger.py", "random"),
    ("queues/locks.py", "time"),
    ("cluster/image.py", "postroad.wire.primitives"),
    ("cluster/controller.py", "os"),
    ("replication/leader.py", "postroad.log.epochs"),
    ("replication/leader.py", "postroad.cluster.keys"),
    ("replication/follower.py", "postroad.now"),
    ("replication/follower.py", "time"),
    ("security/rules.py", "postroad.cluster.keys"),
    ("security/sasl.py", "postroad.wire.primitives"),
    ("security/scram.py", "secrets"),
    ("filters/times.py", "datetime"),
    ("filters/filter.py", "postroad.wire.records"),
    ("filters/parser.py", "postroad.groups.regex"),
    ("cluster/etcd_messages.py", "aiohttp"),
    ("cluster/etcd_watch.py", "aiohttp"),
    ("cluster/image.py", "asyncio"),
    ("cluster/store_frames.py", "socket"),
    ("config/values.py", "postroad.log.settings"),
    ("config/values.py", "postroad.replication.leader"),
    ("config/values.py", "postroad.broker.runtime"),
    ("client/metadata.py", "postroad.cluster.ids"),
    ("client/metadata.py", "postroad.config"),
    ("client/backoff.py", "random"),
    ("client/connection.py", "socket"),
    ("client/producer.py", "time"),
    ("client/share_member.py", "uuid"),
    ("client/client.py", "os"),
    ("client/client.py", "threading"),
    ("client/client.py", "secrets"),
    ("client/client.py", "selectors"),
    ("gateway/gateway.py", "postroad.queues.names"),
    ("gateway/gateway.py", "postroad.cluster.ids"),
    ("gateway/gateway.py", "postroad.replication.leader"),
    ("gateway/gateway.py", "postroad.broker.node"),
    ("spark/source.py", "postroad.cluster.ids"),
    ("pipelines/archive.py", "postroad.config"),
    ("workers/app.py", "postroad.queues.share_partition"),
    ("workers/runner.py", "postroad.broker.node"),
    ("mirrors/mirror.py", "postroad.spark.cluster"),
    ("mirrors/partition.py", "postroad.log.segment"),
    ("mirrors/partition.py", "time"),
    ("log/segment.py", "postroad.wire.messages.fetch"),
    ("log/retention.py", "time"),
    ("log/segment.py", "socket"),
    ("wire/batch.py", "os"),
    ("wire/batch.py", "postroad.now"),
    ("metrics/page.py", "threading"),
    ("metrics/page.py", "postroad.errors"),
    ("errors/base.py", "postroad.wire.batch"),
    ("broker/turn.py", "postroad.cli.output"),
    ("broker/turn.py", "postroad.testing"),
    ("broker/data_directory.py", "os"),
    ("broker/data_directory.py", "fcntl"),
    ("broker/reserve.py", "tempfile"),
    ("broker/descriptors.py", "resource"),
    ("broker/metrics/collect.py", "resource"),
    ("broker/turn.py", "time"),
    ("broker/turn.py", "selectors"),
    ("broker/listener.py", "socket"),
    ("broker/flusher.py", "threading"),
    ("broker/housekeeping.py", "random"),
    ("broker/subscriptions/schedule_file.py", "shutil"),
    ("broker/producer_ids.py", "uuid"),
    ("broker/api/receipt_key.py", "secrets"),
]


@pytest.fixture(scope="module")
def refusal(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the import contracts say of a copy with all these imports in it."""
    copy = tmp_path_factory.mktemp("planted")
    shutil.copytree(SOURCE, copy / "src" / "postroad", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for file, module in PLANTED:
        with (copy / "src" / "postroad" / file).open("a") as opened:
            opened.write(f"\nimport {module}\n")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "COLUMNS": "500"}
    run = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


@pytest.mark.parametrize(("file", "module"), PLANTED)
def test_an_import_that_a_room_may_not_have_breaks_a_contract(file: str, module: str, refusal: str) -> None:
    importer = "postroad." + file.removesuffix(".py").replace("/", ".")
    assert f"{importer} -> {module} (l." in refusal
