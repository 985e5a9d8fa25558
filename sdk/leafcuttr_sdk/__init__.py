"""What plugin authors import: types and contracts. It never imports the broker.

The names are found in the modules beside this one when they are requested, so that a plugin that is off costs next to
nothing. `leafcuttr_sdk.testing` is for tests only.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_sdk.types import Clock, TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.admin import AdminRoute, Finding, HealthCheck, Request, Response
    from leafcuttr_sdk.broker import EARLIEST, LATEST, Broker
    from leafcuttr_sdk.cli import CliCommand
    from leafcuttr_sdk.cluster import Cluster, Endpoint
    from leafcuttr_sdk.consumer import Consumer
    from leafcuttr_sdk.errors import BrokerError, ErrorCode, PluginError
    from leafcuttr_sdk.filters import (
        DROP,
        DeadLetter,
        ProduceValidator,
        ProduceValidatorSpec,
        RecordFilter,
        RecordFilterSpec,
        TopicContext,
        Verdict,
    )
    from leafcuttr_sdk.formats import FormatCodec, FormatError, Place, RecordFormat
    from leafcuttr_sdk.groups import CommittedOffset, GroupInfo, GroupMember, Groups
    from leafcuttr_sdk.listening import Listening
    from leafcuttr_sdk.metrics import Counter, Gauge, MetricReading, Metrics, counter, gauge
    from leafcuttr_sdk.plugin import API_VERSION, Plugin
    from leafcuttr_sdk.records import (
        Appended,
        Fetched,
        NewBatch,
        Produced,
        RawRead,
        Record,
        StoredRecord,
    )
    from leafcuttr_sdk.services import Service, ServiceSpec
    from leafcuttr_sdk.settings import Setting, Settings, Type, listener_settings, tls_settings
    from leafcuttr_sdk.topics import PartitionInfo, TopicInfo, Topics
    from leafcuttr_sdk.trouble import Complaints, exhausted, import_late

_PLACES: Final = {
    "admin": "AdminRoute Finding HealthCheck Request Response",
    "broker": "EARLIEST LATEST Broker",
    "cli": "CliCommand",
    "cluster": "Cluster Endpoint",
    "consumer": "Consumer",
    "errors": "BrokerError ErrorCode PluginError",
    "filters": "DROP DeadLetter ProduceValidator ProduceValidatorSpec RecordFilter RecordFilterSpec TopicContext "
    "Verdict",
    "formats": "FormatCodec FormatError Place RecordFormat",
    "groups": "CommittedOffset GroupInfo GroupMember Groups",
    "listening": "Listening",
    "metrics": "Counter Gauge MetricReading Metrics counter gauge",
    "plugin": "API_VERSION Plugin",
    "records": "Appended Fetched NewBatch Produced RawRead Record StoredRecord",
    "services": "Service ServiceSpec",
    "settings": "Setting Settings Type listener_settings tls_settings",
    "topics": "PartitionInfo TopicInfo Topics",
    "trouble": "Complaints exhausted import_late",
}
_MODULES: Final = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = [
    "API_VERSION",
    "DROP",
    "EARLIEST",
    "LATEST",
    "AdminRoute",
    "Appended",
    "Broker",
    "BrokerError",
    "CliCommand",
    "Clock",
    "Cluster",
    "CommittedOffset",
    "Complaints",
    "Consumer",
    "Counter",
    "DeadLetter",
    "Endpoint",
    "ErrorCode",
    "Fetched",
    "Finding",
    "FormatCodec",
    "FormatError",
    "Gauge",
    "GroupInfo",
    "GroupMember",
    "Groups",
    "HealthCheck",
    "Listening",
    "MetricReading",
    "Metrics",
    "NewBatch",
    "PartitionInfo",
    "Place",
    "Plugin",
    "PluginError",
    "ProduceValidator",
    "ProduceValidatorSpec",
    "Produced",
    "RawRead",
    "Record",
    "RecordFilter",
    "RecordFilterSpec",
    "RecordFormat",
    "Request",
    "Response",
    "Service",
    "ServiceSpec",
    "Setting",
    "Settings",
    "StoredRecord",
    "TopicContext",
    "TopicInfo",
    "TopicPartition",
    "Topics",
    "Type",
    "Verdict",
    "counter",
    "exhausted",
    "gauge",
    "import_late",
    "listener_settings",
    "tls_settings",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
