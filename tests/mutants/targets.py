"""The modules that are mutated, and for each the tests nearest to it, the quickest and nearest first."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "core" / "leafcuttr"

TARGETS: Final[dict[str, tuple[str, ...]]] = {
    "log/recovery/recovery": (
        "log/test_recovery_decisions.py",
        "log/test_recovery.py",
        "log/test_powerloss_recovery.py",
        "log/test_displaced.py",
        "log/test_transactions_recovery.py",
        "log/test_doubt.py",
        "log/cleaner/test_swap.py",
        "log/test_manager.py",
    ),
    "log/recovery/rescan": (
        "log/test_recovery.py",
        "log/test_rescan_decisions.py",
        "log/test_recovery_decisions.py",
        "log/test_powerloss_recovery.py",
        "log/test_displaced.py",
        "log/test_transactions_recovery.py",
        "log/cleaner/test_swap.py",
        "log/test_manager.py",
    ),
    "log/retention": ("log/test_retention.py", "log/test_transactions.py", "log/test_manager.py"),
    "log/producers/state": (
        "log/test_producer_state_table.py",
        "log/test_producer_state.py",
        "log/test_transactions.py",
        "log/test_transactions_recovery.py",
        "log/test_append.py",
        "log/test_commit.py",
    ),
    "log/segment/txn_index": (
        "log/test_txn_index.py",
        "log/test_transactions.py",
        "log/test_transactions_recovery.py",
        "log/cleaner/test_compact.py",
        "log/cleaner/test_swap.py",
    ),
    "log/append/commit": (
        "log/test_commit.py",
        "log/test_commit_steps.py",
        "log/test_flight.py",
        "log/test_append.py",
        "log/test_roll.py",
        "log/test_sync_mode.py",
        "log/test_transactions.py",
        "log/test_doubt.py",
        "log/test_chain.py",
    ),
    "log/append/background_write": (
        "log/test_flight.py",
        "log/test_commit.py",
        "log/test_sync_mode.py",
        "log/test_roll.py",
        "log/test_doubt.py",
        "log/test_chain.py",
    ),
    "state/groups/machine": (
        "state/groups/test_machine.py",
        "state/groups/test_machine_stateful.py",
    ),
    "state/transactions/machine": (
        "state/transactions/test_machine_rules.py",
        "state/transactions/test_machine.py",
    ),
}


def source_of(module: str) -> Path:
    return PACKAGE / f"{module}.py"


def nearest_tests(module: str) -> list[str]:
    """The tests of a module, as paths from the root of the project."""
    return [f"tests/{name}" for name in TARGETS[module]]
