"""What every suite shares: the choice between the short slice of the gate and the long run.

A test marked `long` runs only under `--long`, which the named nox sessions pass; of one marked `one_in(n)` every n-th
case runs without, and of a property's examples an eighth.
"""

import signal

import pytest
from hypothesis import HealthCheck, Phase, settings

from support.folder_times import FolderTimes, ProcessorTimes
from support.gates_slice import divided, sampled, take_all_examples
from support.side_by_side import costliest_first

pytest_plugins = [
    "support.forked_run",
    "support.live_fixtures",
    "support.patient_clock",
    "support.setting_marks",
    "support.shared_trust",
]

# What a test may take in a long suite, in seconds: the gate's limit, in pyproject.toml, is for its slices of them.
LONG_TIMEOUT_S = 3600

# No test depends on the speed of the machine: hypothesis neither times an example nor its making.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A mutant is looked for the same examples each time, and killed by the first that notices it.
settings.register_profile(
    "mutants",
    settings.get_profile("unhurried"),
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("unhurried")
_EXAMPLES = 100
"""Of a property that says no number: as many as hypothesis tries by itself."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long cases too (the named nox sessions do)")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--long") or config.getoption("--hypothesis-profile", None):
        take_all_examples()
    else:
        # The same examples in each run: what only chance finds is no fault of the change that the gate looks at.
        settings.register_profile(
            "gate", settings.get_profile("unhurried"), max_examples=sampled(_EXAMPLES), derandomize=True
        )
        settings.load_profile("gate")
    config.addinivalue_line("markers", "long: not in the gate's slice; runs under --long")
    config.addinivalue_line(
        "markers", "one_in(n): every n-th case is in the gate's slice; all run under --long"
    )
    config.addinivalue_line(
        "markers", "alone: looks at time, memory or descriptors; runs when no other test does"
    )
    config.addinivalue_line(
        "markers", "on_spark: of the gate's slice of a real Spark; runs in one process, with one JVM"
    )
    config.addinivalue_line(
        "markers",
        "setting(*names, while_running=False): the test sees these settings act (see support.setting_marks)",
    )
    config.pluginmanager.register(ProcessorTimes())
    config.pluginmanager.register(FolderTimes())
    # A run in the background inherits an ignored SIGINT, and what is started here would inherit it in turn.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    # Bytes made at collection (compressed, signed) differ from run to run: a test would not be found by its id.
    if isinstance(val, bytes) and len(val) > 16 and not val.decode("latin-1").isprintable():
        return argname
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--processes"):
        costliest_first(items)
    if config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(LONG_TIMEOUT_S))
        return
    kept, left_out = divided(items)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept
