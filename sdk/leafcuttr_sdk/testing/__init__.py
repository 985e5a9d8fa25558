"""What plugin authors test with: a real broker as a pytest fixture, and checks of a class against its contract.

The checks need no pytest, and can be called from any test:

    def test_contract():
        check_record_filter(MyFilter, plugin=my_plugin)

The names below are imported when they are asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from leafcuttr_sdk.testing.context import HandClock, fixed_settings, topic_context
    from leafcuttr_sdk.testing.record_checks import check_produce_validator, check_record_filter
    from leafcuttr_sdk.testing.report import Check, ContractError, Report
    from leafcuttr_sdk.testing.samples import Sample, sample_records

_PLACES: Final = {
    "context": "HandClock fixed_settings topic_context",
    "record_checks": "check_produce_validator check_record_filter",
    "report": "Check ContractError Report",
    "samples": "Sample sample_records",
}
_MODULES: Final = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = [
    "Check",
    "ContractError",
    "HandClock",
    "Report",
    "Sample",
    "check_produce_validator",
    "check_record_filter",
    "fixed_settings",
    "sample_records",
    "topic_context",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
