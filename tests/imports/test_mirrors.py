"""The tests of a module are found by its name: those of core/leafcuttr/log/read/lookup.py are in
tests/log/read/test_lookup.py, and more of them in test_lookup_ASPECT.py beside it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from imports.graph import ROOT

CORE: Final = ROOT / "core" / "leafcuttr"
TESTS: Final = ROOT / "tests"
MIRRORS: Final = ("cli", "client", "handlers", "log", "metrics", "net", "runtime", "server", "state")

ACROSS: Final = {
    "cli/dump/test_kafka_dump_log.py": "Kafka's tool prints the same",
    "client/blocking/test_blocking_contract.py": "the contract of blocking peers, over the network",
    "client/test_secure_kafka.py": "a real Kafka with TLS and SASL, to the client and to commands",
    "client/test_contract.py": "the contract of peers, over the network",
    "log/cleaner/test_as_kafka.py": "what Kafka's cleaner makes of the same records",
    "log/cleaner/test_with_transactions.py": "compaction among transactions of clients",
    "log/producers/test_duplicates.py": "the state of producers and the staging of batches together",
    "log/recovery/test_transactions.py": "what recovery makes of transactions, whichever module does it",
    "log/recovery/test_transactions_killed.py": "the same, of a process that was killed",
    "log/recovery/test_powerloss.py": "what recovery makes of blocks that were lost",
    "log/append/test_sync_mode.py": "flushes before the acknowledgement, from staging to the answer",
    "log/append/test_write.py": "`Log.write`: which of the ways a write takes",
    "log/test_dump_log_segments.py": "Kafka's tool reads what the log writes",
    "log/test_far_offsets.py": "offsets near the largest, in every part of the log",
    "log/test_fixture_directory.py": "directories of every format are opened",
    "log/test_release_directories.py": "directories of released versions are opened",
    "log/test_transactions.py": "transactions in the log, from staging to reading",
}
"""Tests of several modules together, and of which."""

ELSEWHERE: Final = {
    "handlers/config_resources": "test_alter_configs, test_incremental_alter_configs, test_describe_configs",
    "handlers/create_delegation_token": "test_delegation_tokens",
    "handlers/describe_delegation_token": "test_delegation_tokens",
    "handlers/expire_delegation_token": "test_delegation_tokens",
    "handlers/renew_delegation_token": "test_delegation_tokens",
    "runtime/runtime": "a record of the others",
    "runtime/transitions": "the error of the tables of states, tests of these",
    "server/admin/plugged": "tests/plugins/test_serving.py, with plugins",
    "server/admin/gathering": "test_readings, test_names and test_lag see it through a scrape",
}
"""Modules of `COMPLETE` folders without a file of tests of their own, and where they are tested."""
COMPLETE: Final = ("handlers", "net", "runtime", "server", "server/admin")


def names(folder: Path) -> Iterator[str]:
    """The modules and packages of a folder."""
    for path in folder.iterdir():
        if path.suffix == ".py":
            yield path.stem
        elif (path / "__init__.py").exists():
            yield path.name


def module_of(test: Path) -> str | None:
    """The module, or package, that a file of tests is named after."""
    folder = CORE / test.parent.relative_to(TESTS)
    name = test.stem.removeprefix("test_")
    if not folder.is_dir():
        return None
    # The longest: the tests of `tls_files` are not those of `tls`.
    fitting = (each for each in names(folder) if name == each or name.startswith(f"{each}_"))
    return max(fitting, key=len, default=None)


def files_of_tests() -> list[Path]:
    return sorted(path for folder in MIRRORS for path in (TESTS / folder).rglob("test_*.py"))


def test_each_file_of_tests_is_named_after_a_module() -> None:
    assert len(files_of_tests()) > 150
    unnamed = {str(path.relative_to(TESTS)) for path in files_of_tests() if module_of(path) is None}
    assert unnamed == ACROSS.keys()


@pytest.mark.parametrize("folder", COMPLETE)
def test_each_module_has_a_file_of_tests(folder: str) -> None:
    modules = {f"{folder}/{path.stem}" for path in (CORE / folder).glob("[!_]*.py")}
    tested = {f"{folder}/{module_of(path)}" for path in (TESTS / folder).glob("test_*.py")}
    elsewhere = {name for name in ELSEWHERE if name.rpartition("/")[0] == folder}
    assert modules - tested == elsewhere


def test_other_names_are_found() -> None:
    assert module_of(TESTS / "server" / "test_listener.py") == "listener"
    assert module_of(TESTS / "server" / "test_listeners.py") is None
    assert module_of(TESTS / "server" / "test_connection_counts.py") == "connection"
    assert module_of(TESTS / "cli" / "doctor" / "test_remote.py") == "remote"
    assert module_of(TESTS / "server" / "log" / "test_listener.py") is None
