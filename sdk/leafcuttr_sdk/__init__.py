"""What plugin authors import: types and contracts. It never imports the broker.

The names are found in the modules beside this one when they are requested, so that a plugin that is off costs next to
nothing. `leafcuttr_sdk.testing` is for tests only.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_sdk.types import Clock, TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.admin import AdminRoute, Finding, HealthCheck, Request, Response
    from leafcuttr_sdk.authentication import (
        Authenticated,
        Authentication,
        AuthenticationExchange,
        Authenticator,
        AuthenticatorSpec,
        BearerToken,
        Challenge,
        Credentials,
        ExchangeAuthenticator,
        NameAndPassword,
        PeerCertificate,
        Refused,
    )
    from leafcuttr_sdk.broker import EARLIEST, LATEST, Broker
    from leafcuttr_sdk.children import Child, ChildError, Restart
    from leafcuttr_sdk.cli import (
        CliCommand,
        CommandContext,
        admin_server_option,
        bootstrap_server_options,
        command_context,
        complete_groups,
        complete_topics,
        json_option,
    )
    from leafcuttr_sdk.cluster import Cluster, Endpoint
    from leafcuttr_sdk.consumer import Consumer
    from leafcuttr_sdk.errors import (
        AddressTakenError,
        AuthorizationFailed,
        BrokerError,
        ErrorCode,
        NotReadyError,
        PluginError,
    )
    from leafcuttr_sdk.filters import (
        DROP,
        BatchValidator,
        DeadLetter,
        FilterChain,
        FilterFailure,
        ForgettingFilter,
        NeedsThread,
        NotReady,
        Outcome,
        ProduceValidator,
        ProduceValidatorSpec,
        RecordFilter,
        RecordFilterSpec,
        Routed,
        TopicContext,
        Verdict,
        WaitingFilter,
        WaitingValidator,
    )
    from leafcuttr_sdk.formats import (
        FormatCodec,
        FormatError,
        HeadersCodec,
        Place,
        RecordFormat,
        RecordMaker,
    )
    from leafcuttr_sdk.groups import CommittedOffset, ConsumerGroupMetadata, GroupInfo, GroupMember, Groups
    from leafcuttr_sdk.listening import Listening
    from leafcuttr_sdk.metrics import Counter, Gauge, Histogram, MetricReading, Metrics, counter, gauge
    from leafcuttr_sdk.peek import Peek, PeekedBatch
    from leafcuttr_sdk.plugin import API_MINOR, API_VERSION, Plugin, StartFailure
    from leafcuttr_sdk.principals import ANONYMOUS, Principal, act_for, current_principal
    from leafcuttr_sdk.producer import Producer, ProducerFullError, Receipt
    from leafcuttr_sdk.read_only import ReadOnlyBroker, ReadOnlyTopics
    from leafcuttr_sdk.records import (
        AbortedRange,
        Appended,
        Fetched,
        NewBatch,
        Produced,
        RawRead,
        Record,
        StoredRecord,
    )
    from leafcuttr_sdk.schemas import (
        DataError,
        Difference,
        IncompatibleSchemaError,
        ParsedSchema,
        RegisteredSchema,
        ResolvedReference,
        SchemaCodec,
        SchemaError,
        SchemaFormat,
        SchemaNotFoundError,
        SchemaProvider,
        SchemaProviderError,
        SchemaReference,
        SchemaRule,
        SchemaVersion,
    )
    from leafcuttr_sdk.security import (
        Authorizer,
        AuthorizerSpec,
        ClientQuota,
        Operation,
        Requester,
        Resource,
        ResourceType,
        Security,
    )
    from leafcuttr_sdk.services import Service, ServiceSpec
    from leafcuttr_sdk.serving import ByteStream, Handler, Peer
    from leafcuttr_sdk.settings import (
        FindingLevel,
        Setting,
        SettingFinding,
        Settings,
        Type,
        authentication_settings,
        listener_settings,
        serving_settings,
        tls_settings,
        websocket_settings,
    )
    from leafcuttr_sdk.topics import PartitionInfo, TopicInfo, Topics
    from leafcuttr_sdk.transactions import OpenTransaction, TransactionalProducer
    from leafcuttr_sdk.trouble import Complaints, exhausted, import_late
    from leafcuttr_sdk.workers import (
        WorkerDeadlineError,
        WorkerDiedError,
        WorkerError,
        WorkerMemoryError,
        WorkerRaisedError,
        WorkerTransferError,
    )

_PLACES: Final = {
    "admin": "AdminRoute Finding HealthCheck Request Response",
    "authentication": "Authenticated Authentication AuthenticationExchange Authenticator AuthenticatorSpec "
    "BearerToken Challenge Credentials ExchangeAuthenticator NameAndPassword PeerCertificate Refused",
    "broker": "EARLIEST LATEST Broker",
    "children": "Child ChildError Restart",
    "cli": "CliCommand CommandContext admin_server_option bootstrap_server_options command_context complete_groups "
    "complete_topics json_option",
    "cluster": "Cluster Endpoint",
    "consumer": "Consumer",
    "errors": "AddressTakenError AuthorizationFailed BrokerError ErrorCode NotReadyError PluginError",
    "filters": "DROP BatchValidator DeadLetter FilterChain FilterFailure ForgettingFilter NeedsThread NotReady Outcome "
    "ProduceValidator ProduceValidatorSpec RecordFilter RecordFilterSpec Routed TopicContext Verdict "
    "WaitingFilter WaitingValidator",
    "formats": "FormatCodec FormatError HeadersCodec Place RecordFormat RecordMaker",
    "groups": "CommittedOffset ConsumerGroupMetadata GroupInfo GroupMember Groups",
    "listening": "Listening",
    "metrics": "Counter Gauge Histogram MetricReading Metrics counter gauge",
    "peek": "Peek PeekedBatch",
    "plugin": "API_MINOR API_VERSION StartFailure Plugin",
    "principals": "ANONYMOUS Principal act_for current_principal",
    "producer": "Producer ProducerFullError Receipt",
    "read_only": "ReadOnlyBroker ReadOnlyTopics",
    "records": "AbortedRange Appended Fetched NewBatch Produced RawRead Record StoredRecord",
    "schemas": "DataError Difference IncompatibleSchemaError ParsedSchema RegisteredSchema ResolvedReference "
    "SchemaCodec SchemaError SchemaFormat SchemaNotFoundError SchemaProvider SchemaProviderError SchemaReference "
    "SchemaRule SchemaVersion",
    "security": "Authorizer AuthorizerSpec ClientQuota Operation Requester Resource ResourceType Security",
    "services": "Service ServiceSpec",
    "settings": "FindingLevel Setting SettingFinding Settings Type authentication_settings listener_settings "
    "serving_settings tls_settings websocket_settings",
    "serving": "ByteStream Handler Peer",
    "topics": "PartitionInfo TopicInfo Topics",
    "transactions": "OpenTransaction TransactionalProducer",
    "trouble": "Complaints exhausted import_late",
    "workers": "WorkerDeadlineError WorkerDiedError WorkerError WorkerMemoryError WorkerRaisedError "
    "WorkerTransferError",
}
_MODULES: Final = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = [
    "ANONYMOUS",
    "API_MINOR",
    "API_VERSION",
    "DROP",
    "EARLIEST",
    "LATEST",
    "AbortedRange",
    "AddressTakenError",
    "AdminRoute",
    "Appended",
    "Authenticated",
    "Authentication",
    "AuthenticationExchange",
    "Authenticator",
    "AuthenticatorSpec",
    "AuthorizationFailed",
    "Authorizer",
    "AuthorizerSpec",
    "BatchValidator",
    "BearerToken",
    "Broker",
    "BrokerError",
    "ByteStream",
    "Challenge",
    "Child",
    "ChildError",
    "CliCommand",
    "ClientQuota",
    "Clock",
    "Cluster",
    "CommandContext",
    "CommittedOffset",
    "Complaints",
    "Consumer",
    "ConsumerGroupMetadata",
    "Counter",
    "Credentials",
    "DataError",
    "DeadLetter",
    "Difference",
    "Endpoint",
    "ErrorCode",
    "ExchangeAuthenticator",
    "Fetched",
    "FilterChain",
    "FilterFailure",
    "Finding",
    "FindingLevel",
    "ForgettingFilter",
    "FormatCodec",
    "FormatError",
    "Gauge",
    "GroupInfo",
    "GroupMember",
    "Groups",
    "Handler",
    "HeadersCodec",
    "HealthCheck",
    "Histogram",
    "IncompatibleSchemaError",
    "Listening",
    "MetricReading",
    "Metrics",
    "NameAndPassword",
    "NeedsThread",
    "NewBatch",
    "NotReady",
    "NotReadyError",
    "OpenTransaction",
    "Operation",
    "Outcome",
    "ParsedSchema",
    "PartitionInfo",
    "Peek",
    "PeekedBatch",
    "Peer",
    "PeerCertificate",
    "Place",
    "Plugin",
    "PluginError",
    "Principal",
    "ProduceValidator",
    "ProduceValidatorSpec",
    "Produced",
    "Producer",
    "ProducerFullError",
    "RawRead",
    "ReadOnlyBroker",
    "ReadOnlyTopics",
    "Receipt",
    "Record",
    "RecordFilter",
    "RecordFilterSpec",
    "RecordFormat",
    "RecordMaker",
    "Refused",
    "RegisteredSchema",
    "Request",
    "Requester",
    "ResolvedReference",
    "Resource",
    "ResourceType",
    "Response",
    "Restart",
    "Routed",
    "SchemaCodec",
    "SchemaError",
    "SchemaFormat",
    "SchemaNotFoundError",
    "SchemaProvider",
    "SchemaProviderError",
    "SchemaReference",
    "SchemaRule",
    "SchemaVersion",
    "Security",
    "Service",
    "ServiceSpec",
    "Setting",
    "SettingFinding",
    "Settings",
    "StartFailure",
    "StoredRecord",
    "TopicContext",
    "TopicInfo",
    "TopicPartition",
    "Topics",
    "TransactionalProducer",
    "Type",
    "Verdict",
    "WaitingFilter",
    "WaitingValidator",
    "WorkerDeadlineError",
    "WorkerDiedError",
    "WorkerError",
    "WorkerMemoryError",
    "WorkerRaisedError",
    "WorkerTransferError",
    "act_for",
    "admin_server_option",
    "authentication_settings",
    "bootstrap_server_options",
    "command_context",
    "complete_groups",
    "complete_topics",
    "counter",
    "current_principal",
    "exhausted",
    "gauge",
    "import_late",
    "json_option",
    "listener_settings",
    "serving_settings",
    "tls_settings",
    "websocket_settings",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
