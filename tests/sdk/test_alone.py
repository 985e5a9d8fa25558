"""The SDK alone: its folder on the path, and of everything else the standard library only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import leafcuttr_sdk
from leafcuttr_sdk import testing

FOLDER = Path(leafcuttr_sdk.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in FOLDER.rglob("*.py")
)
NEEDS = {
    # The one that pytest itself loads; there it is.
    "leafcuttr_sdk.testing.pytest_plugin": "pytest",
    # On the loop of a broker: imported by check_service, once that has started one.
    "leafcuttr_sdk.testing.service_trial": "trio",
    # What the extra `web` brings: imported by services over HTTP when they are made.
    **dict.fromkeys(
        [
            f"leafcuttr_sdk.web.{name}"
            for name in (
                "bodies",
                "connection",
                "events",
                "exchange",
                "frameworks",
                "front",
                "pieces",
                "queues",
                "routes",
                "server",
                "serving",
                "static_files",
                "tasks",
                "unread",
            )
        ],
        "trio",
    ),
    # CRC-32C, which the standard library lacks: a package that LeafCuttr itself depends on.
    "leafcuttr_sdk.batches": "crc32c",
    **dict.fromkeys(
        [f"leafcuttr_sdk.batches.{name}" for name in ("builder", "checksum", "header", "reader")], "crc32c"
    ),
    # The options of commands, which are click's: imported by a command of a plugin when it is made.
    "leafcuttr_sdk._cli_options": "click",
    "leafcuttr_sdk.web.arriving": "hypercorn",
    "leafcuttr_sdk.web.http2": "h11",
    "leafcuttr_sdk.web.quart_app": "quart",
    "leafcuttr_sdk.testing.sending_trial": "trio",
    "leafcuttr_sdk.testing.serving_trial": "trio",
    # On the loop of the peer that is checked: imported by check_peer.
    **dict.fromkeys(
        [
            f"leafcuttr_sdk.testing.{name}"
            for name in ("peer_cluster_trial", "peer_reading_trial", "peer_trial", "peer_writing_trial")
        ],
        "trio",
    ),
    # Imported by check_blocking_peer, for the batches that it makes.
    "leafcuttr_sdk.testing.blocking_peer_trial": "crc32c",
    "leafcuttr_sdk.testing.shared_transaction_trial": "crc32c",
    # Imported by a service that serves WebSockets, on that loop.
    "leafcuttr_sdk.websocket": "trio",
}
"""Modules that need more than the standard library, what they need, and why that is right."""

PROGRAM = """
import importlib, json, sys
import leafcuttr_sdk.errors
missing, refused = {}, {}
for name in json.loads(sys.argv[1]):
    try:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            getattr(module, public)
    except ModuleNotFoundError as error:
        missing[name] = error.name
    except leafcuttr_sdk.errors.PluginError as error:
        refused[name] = str(error)
others = sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"__main__"})
print(json.dumps([missing, others, refused]))
"""


REFUSED = {
    "leafcuttr_sdk.web": "leafcuttr_sdk.web needs trio, which is not installed; mend it with: "
    "pip install 'leafcuttr[web]'"
}
"""Packages whose names say in one line what is missing."""


def alone(*modules: str) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """What the modules miss, the packages beside the standard library that were imported, and what was refused."""
    # -I and -S: no site-packages, no variables of the environment, no current folder.
    program = f"import sys; sys.path.append({str(FOLDER.parent)!r})\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, json.dumps(modules)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    missing, others, refused = json.loads(done.stdout)
    return missing, others, refused


def test_all_of_it_is_imported() -> None:
    """Every module, and every name of each `__all__`."""
    assert len(MODULES) > 25
    missing, others, refused = alone(*MODULES)
    assert missing == NEEDS
    assert others == ["leafcuttr_sdk"]
    assert refused == REFUSED


@pytest.mark.one_in(6)
@pytest.mark.parametrize("module", [name for name in MODULES if name not in NEEDS])
def test_each_is_imported_by_itself(module: str) -> None:
    """Whichever comes first."""
    refused = {module: REFUSED[module]} if module in REFUSED else {}
    assert alone(module) == ({}, ["leafcuttr_sdk"], refused)


def test_the_type_checkers_find_its_types() -> None:
    assert (FOLDER / "py.typed").is_file()


def test_every_public_name_is_found() -> None:
    for package in (leafcuttr_sdk, testing):
        for name in package.__all__:
            assert getattr(package, name).__class__, name
        with pytest.raises(AttributeError, match="has no attribute 'Brokre'"):
            _ = package.Brokre
