"""A schema registry whose schemas are in a topic: the API of Confluent's registry, inside the broker.

This module is imported at every start, also where the registry is off: it says what there is and imports nothing heavy.

    service, settings       the service; what can be set
    counts                  what is counted while it runs
    registry                the state with what reads and writes it
    `subjects`              what it knows: contexts, subjects, versions, ids, config, mode; no input or output
    `storage`               the topic `_schemas`
    `checks`                reading and comparing schemas, in worker processes
    `api`                   HTTP
    provider, parsed        the registry as other plugins see it
    `people`                the command `schemas`, formats of `consume` and `produce`, metrics and health
    `validation`            topics whose records are checked
    `avro`, `json_schema`, `protobuf`       the formats, each by itself
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.plugin import Plugin
from leafcuttr_sdk.services import Service, ServiceSpec

if TYPE_CHECKING:
    import click

    from leafcuttr_sdk.admin import HealthCheck
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.cli import CliCommand
    from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec
    from leafcuttr_sdk.formats import RecordFormat
    from leafcuttr_sdk.metrics import MetricReading
    from leafcuttr_sdk.schemas import SchemaFormat, SchemaProvider
    from leafcuttr_sdk.settings import Setting

PLUGIN: Final = Plugin(
    name="registry",
    api_version=1,
    summary="A schema registry: Avro, JSON Schema and Protobuf, as Confluent's clients use it",
    enabled_by="lc.schema.registry.enable",
    extra="registry",
    modules=("hypercorn", "quart", "quart_trio", "fastavro", "jsonschema", "referencing", "google.protobuf"),
)


def leafcuttr_register_settings() -> "Iterable[Setting]":
    from leafcuttr_registry.settings import settings

    return settings()


def leafcuttr_register_topic_settings() -> "Iterable[Setting]":
    from leafcuttr_registry.validation.settings import topic_settings

    return topic_settings()


def leafcuttr_register_produce_validators() -> "Iterable[ProduceValidatorSpec]":
    from leafcuttr_registry.validation.specs import validators

    return validators()


def leafcuttr_register_record_filters() -> "Iterable[RecordFilterSpec]":
    from leafcuttr_registry.validation.specs import filters

    return filters()


def leafcuttr_register_schema_formats() -> "Iterable[SchemaFormat]":
    from leafcuttr_registry.formats import formats

    return formats()


def leafcuttr_register_schema_provider(broker: "Broker") -> "Iterable[SchemaProvider]":
    from leafcuttr_registry.provider import provider_of

    return [provider_of(broker)]


def leafcuttr_register_cli_commands() -> "Iterable[CliCommand]":
    from leafcuttr_sdk.cli import CliCommand

    return [CliCommand("schemas", "look at the schemas of a registry, and change them", _schemas)]


def _schemas() -> "click.Command":
    from leafcuttr_registry.people.command import schemas

    return schemas


def leafcuttr_register_record_formats() -> "Iterable[RecordFormat]":
    from leafcuttr_registry.people.formats import record_formats

    return record_formats()


def leafcuttr_register_health_checks(broker: "Broker") -> "Iterable[HealthCheck]":
    from leafcuttr_registry.people.metrics import health_checks

    return health_checks(broker)


def leafcuttr_register_metrics(broker: "Broker") -> "Iterable[MetricReading]":
    from leafcuttr_registry.people.metrics import readings

    return readings(broker)


def leafcuttr_register_services() -> Iterable[ServiceSpec]:
    return [ServiceSpec("registry", _make)]


def _make(broker: "Broker") -> Service:
    from leafcuttr_registry.service import RegistryService

    return RegistryService(broker)
