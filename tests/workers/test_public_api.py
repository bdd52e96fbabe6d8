"""What `import postroad` offers is a promise: names, and that the import is quick."""

from __future__ import annotations

import ast
import datetime
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import postroad

FROZEN = [
    "App",
    "Client",
    "Message",
    "Middleware",
    "Outgoing",
    "PostroadError",
    "Received",
    "Record",
    "Reject",
    "Retry",
    "SyncClient",
    "Tracing",
    "Undecodable",
    "__version__",
]
API = Path(__file__).with_name("public_api.txt")
NEEDS_MORE = {"Tracing"}  # OpenTelemetry; `make recipes` tests it


def test_public_names_are_these() -> None:
    assert sorted({*postroad.__all__, *NEEDS_MORE}) == FROZEN
    assert not NEEDS_MORE & set(postroad.__all__), "`import *` needs nothing more"
    assert all(getattr(postroad, name) is not None for name in FROZEN if name not in NEEDS_MORE)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = getattr(postroad, "Nothing")  # noqa: B009


def described(name: str) -> list[str]:
    """The public methods, properties and fields of a public class, with their parameters."""
    cls = getattr(postroad, name)
    if not inspect.isclass(cls):
        return [name]
    lines = [f"{name}{_parameters(cls)}"]
    for member in sorted({each for base in cls.__mro__[:-1] for each in vars(base)}):
        value = inspect.getattr_static(cls, member)
        if member.startswith("_") or (issubclass(cls, BaseException) and hasattr(BaseException, member)):
            continue
        value = getattr(value, "__func__", value)
        lines.append(f"{name}.{member}{_parameters(value) if inspect.isfunction(value) else ''}")
    return lines


def _parameters(of: Callable[..., object]) -> str:
    try:
        found = inspect.signature(of)
    except ValueError:
        return "(…)"  # an exception without a constructor of its own
    shown = str(found.replace(return_annotation=inspect.Signature.empty))
    return re.sub(r"ForwardRef\(('[^']*')[^)]*\)", r"\1", shown)  # of a NamedTuple


def test_public_methods_and_parameters_are_these() -> None:
    """What is added goes into the file; what is taken away or renamed breaks programs that others wrote."""
    names = sorted(set(FROZEN) - NEEDS_MORE - {"__version__"})
    assert [line for name in names for line in described(name)] == API.read_text().splitlines()


def test_type_checkers_see_the_same_names() -> None:
    stub = ast.parse((Path(postroad.__file__).with_suffix(".pyi")).read_text())
    names = {alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert sorted({*names, "__version__"}) == FROZEN
    assert Path(postroad.__file__).with_name("py.typed").exists()


def test_every_public_name_says_what_it_is() -> None:
    for name in set(FROZEN) - NEEDS_MORE - {"__version__"}:
        assert inspect.getdoc(getattr(postroad, name)), name
    undocumented = [
        f"{cls.__name__}.{name}"
        for cls in (postroad.App, postroad.Client, postroad.SyncClient)
        for name, member in vars(cls).items()
        if not name.startswith("_") and callable(member) and not inspect.getdoc(member)
    ]
    assert undocumented == []


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter loads for it."""
    told = "import sys; before = set(sys.modules); " + code + "; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_import_loads_next_to_nothing() -> None:
    loaded = loaded_by("import postroad")
    assert {name for name in loaded if name.startswith(("postroad", "asyncio", "msgspec"))} == {"postroad"}


def test_app_loads_neither_the_node_nor_the_command_line() -> None:
    loaded = loaded_by("import postroad; postroad.App().worker('a')(len)")
    assert "postroad.workers.app" in loaded
    rooms = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("postroad.")}
    assert rooms <= {
        "postroad.workers",
        "postroad.client",
        "postroad.wire",
        "postroad.errors",
        "postroad.system",
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lock": "soon"}, "lock: 'soon' is no duration"),
        ({"lock": "1ms"}, "lock: '1ms' is shorter than 1s"),
        ({"lock": "13h"}, "lock: '13h' is longer than 12h"),
        ({"attempts": 0}, "attempts: 0 is neither a number from 1 to 1000 nor 'none'"),
        ({"attempts": True}, "attempts: True is neither"),
        ({"concurrency": 0}, "concurrency: 0 is not from 1 to 10000"),
        ({"order": "random"}, "order: 'random' is none of none, key, partition"),
        ({"start": "middle"}, "start: 'middle' is none of earliest, latest"),
        ({"backoff": "2m", "backoff_max": "1m"}, "backoff: '2m' is longer than backoff_max"),
        ({"backoff": -1}, "backoff: -1 is no duration"),
        ({"topic": ""}, "topic: '' is no topic's name"),
        ({"timeout": 0}, "timeout: 0 is shorter than 1ms"),
    ],
)
def test_option_that_can_not_be_used_is_named(options: dict[str, object], said: str) -> None:
    app = postroad.App()
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        app.worker("resize", **options)(len)  # type: ignore[arg-type]


def test_function_that_can_not_be_called_with_a_job_is_refused() -> None:
    app = postroad.App()

    def two(job: str, other: str) -> None: ...
    def none() -> None: ...
    def strange(job: set[int] | list[int]) -> None: ...

    with pytest.raises(TypeError, match="nobody gives it 'other'"):
        app.worker("a")(two)
    with pytest.raises(TypeError, match="it takes neither"):
        app.worker("b")(none)
    with pytest.raises(TypeError, match="can't be read from a message: Type unions"):
        app.worker("c")(strange)
    with pytest.raises(TypeError, match="a worker is a function"):
        app.worker("d")(7)  # type: ignore[type-var]
    app.worker("e")(len)
    with pytest.raises(ValueError, match="subscription 'e' has a worker already"):
        app.worker("e")(len)


def test_value_that_is_no_payload_is_refused_before_anything_is_sent() -> None:
    from postroad.workers.publishing import outgoing

    with pytest.raises(TypeError, match="object can't be a message's payload"):
        outgoing("jobs", object())
    with pytest.raises(ValueError, match="has no time zone"):
        outgoing("jobs", b"", at=datetime.datetime(2026, 1, 1))
    with pytest.raises(TypeError, match="headers: 'n' is int"):
        outgoing("jobs", b"", headers={"n": 1})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="give both user and password"):
        postroad.Client(user="anna")


def test_tracing_without_opentelemetry_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "postroad.workers.telemetry", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'postroad\[otel\]'"):
        _ = postroad.Tracing
