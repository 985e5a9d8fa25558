"""The modules that are mutated, and for each the tests nearest to it, the quickest and nearest first."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "core" / "leafcuttr"

TARGETS: Final[dict[str, tuple[str, ...]]] = {
    "log/recovery/recovery": (
        "log/recovery/test_recovery_decisions.py",
        "log/recovery/test_recovery.py",
        "log/recovery/test_powerloss.py",
        "log/recovery/test_displaced.py",
        "log/recovery/test_transactions.py",
        "log/files/test_failed_sync.py",
        "log/cleaner/test_swap.py",
        "log/test_manager.py",
    ),
    "log/recovery/rescan": (
        "log/recovery/test_recovery.py",
        "log/recovery/test_rescan_decisions.py",
        "log/recovery/test_recovery_decisions.py",
        "log/recovery/test_powerloss.py",
        "log/recovery/test_displaced.py",
        "log/recovery/test_transactions.py",
        "log/cleaner/test_swap.py",
        "log/test_manager.py",
    ),
    "log/retention": ("log/test_retention.py", "log/test_transactions.py", "log/test_manager.py"),
    "log/producers/state": (
        "log/producers/test_state.py",
        "log/producers/test_duplicates.py",
        "log/test_transactions.py",
        "log/recovery/test_transactions.py",
        "log/append/test_stage.py",
        "log/append/test_commit.py",
    ),
    "log/segment/txn_index": (
        "log/segment/test_txn_index.py",
        "log/test_transactions.py",
        "log/recovery/test_transactions.py",
        "log/cleaner/compaction/test_compact.py",
        "log/cleaner/test_swap.py",
    ),
    "log/append/commit": (
        "log/append/test_commit.py",
        "log/append/test_commit_steps.py",
        "log/append/test_background_write.py",
        "log/append/test_stage.py",
        "log/append/test_roll.py",
        "log/append/test_sync_mode.py",
        "log/test_transactions.py",
        "log/files/test_failed_sync.py",
        "log/append/chain/test_chain.py",
    ),
    "log/append/background_write": (
        "log/append/test_background_write.py",
        "log/append/test_commit.py",
        "log/append/test_sync_mode.py",
        "log/append/test_roll.py",
        "log/files/test_failed_sync.py",
        "log/append/chain/test_chain.py",
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
