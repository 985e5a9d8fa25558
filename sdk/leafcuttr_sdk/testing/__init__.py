"""What plugin authors test with: a real broker as a pytest fixture, and checks of a class against its contract.

The fixtures are in `pytest_plugin`, which pytest finds by itself. The checks need no pytest:

    def test_contract():
        check_record_filter(MyFilter, plugin=my_plugin)

Of the whole SDK only this package imports the broker (and trio), and only once a fixture, a check of a service or
`running_broker` is used. The names below are imported when they are requested.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from leafcuttr_sdk.testing.admin_checks import check_health_check, check_metric_reading
    from leafcuttr_sdk.testing.authenticator_checks import check_authenticator
    from leafcuttr_sdk.testing.authorizer_checks import Question, check_authorizer
    from leafcuttr_sdk.testing.blocking_peer_checks import check_blocking_peer
    from leafcuttr_sdk.testing.broker import RunningBroker, running_broker
    from leafcuttr_sdk.testing.command_checks import check_command
    from leafcuttr_sdk.testing.commands import CommandResult, run_command
    from leafcuttr_sdk.testing.context import HandClock, fixed_settings, topic_context
    from leafcuttr_sdk.testing.format_checks import check_record_format
    from leafcuttr_sdk.testing.peek_trial import peeked_batch
    from leafcuttr_sdk.testing.peer_checks import check_peer
    from leafcuttr_sdk.testing.record_checks import check_produce_validator, check_record_filter
    from leafcuttr_sdk.testing.report import Check, ContractError, Report
    from leafcuttr_sdk.testing.route_checks import check_admin_route
    from leafcuttr_sdk.testing.samples import Sample, sample_records
    from leafcuttr_sdk.testing.schema_format_checks import check_schema_format
    from leafcuttr_sdk.testing.schema_provider_checks import check_schema_provider
    from leafcuttr_sdk.testing.service_checks import check_handler, check_service

_PLACES: Final = {
    "admin_checks": "check_health_check check_metric_reading",
    "authenticator_checks": "check_authenticator",
    "authorizer_checks": "Question check_authorizer",
    "blocking_peer_checks": "check_blocking_peer",
    "broker": "RunningBroker running_broker",
    "command_checks": "check_command",
    "commands": "CommandResult run_command",
    "context": "HandClock fixed_settings topic_context",
    "format_checks": "check_record_format",
    "peek_trial": "peeked_batch",
    "peer_checks": "check_peer",
    "record_checks": "check_produce_validator check_record_filter",
    "report": "Check ContractError Report",
    "route_checks": "check_admin_route",
    "samples": "Sample sample_records",
    "schema_format_checks": "check_schema_format",
    "schema_provider_checks": "check_schema_provider",
    "service_checks": "check_handler check_service",
}
_MODULES: Final = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = [
    "Check",
    "CommandResult",
    "ContractError",
    "HandClock",
    "Question",
    "Report",
    "RunningBroker",
    "Sample",
    "check_admin_route",
    "check_authenticator",
    "check_authorizer",
    "check_blocking_peer",
    "check_command",
    "check_handler",
    "check_health_check",
    "check_metric_reading",
    "check_peer",
    "check_produce_validator",
    "check_record_filter",
    "check_record_format",
    "check_schema_format",
    "check_schema_provider",
    "check_service",
    "fixed_settings",
    "peeked_batch",
    "run_command",
    "running_broker",
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
