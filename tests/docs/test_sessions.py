"""What the gate leaves out is run by a session of the noxfile: by its path."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LEFT_OUT = re.compile(r"\bmark\.(long|one_in)\b")


class Recording:
    """Stands for nox and for a session of it: keeps what the session would run."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, ...]] = []
        self.posargs: tuple[str, ...] = ()
        self.bin = "bin"
        self.virtualenv = SimpleNamespace(location=".")
        self.Session = Any
        self.options = SimpleNamespace()
        self.project = SimpleNamespace(load_toml=lambda _: {}, dependency_groups=lambda *_: ())
        self.sessions: dict[str, Callable[[Any], None]] = {}

    def session(self, function: Callable[[Any], None] | None = None, **_: Any) -> Any:
        if function is None:
            return self.session
        self.sessions[function.__name__] = function
        return function

    def install(self, *_: str, **__: Any) -> None: ...

    def skip(self, why: str) -> None: ...

    def run(self, *words: str, **_: Any) -> None:
        self.commands.append(words)


@pytest.fixture(scope="module")
def whole() -> dict[str, list[str]]:
    """By session, what it runs with all cases."""
    nox = Recording()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "nox", nox)  # the gate's environment has no nox
        runpy.run_path(str(ROOT / "noxfile.py"))
    found: dict[str, list[str]] = {}
    for name, session in nox.sessions.items():
        nox.commands = []
        session(nox)
        for words in nox.commands:
            if words[0] == "pytest" and "--long" in words:
                # One test of a file is not all of them.
                found[name] = [word for word in words if word.startswith("tests/") and "::" not in word]
    return found


def test_files_with_cases_that_the_gate_leaves_out(whole: dict[str, list[str]]) -> None:
    paths = {path for some in whole.values() for path in some}
    assert {"tests/crash", "tests/fuzz", "tests/mqtt", "tests/wire"} <= paths
    missing: list[str] = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        name = file.relative_to(ROOT).as_posix()
        if LEFT_OUT.search(file.read_text()) and not any(
            name == path or name.startswith(f"{path}/") for path in paths
        ):
            missing.append(name)
    assert missing == []


def test_what_sessions_name_is_there(whole: dict[str, list[str]]) -> None:
    assert [path for some in whole.values() for path in some if not (ROOT / path).exists()] == []
