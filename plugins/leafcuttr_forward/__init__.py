"""Forwarding of topics between clusters: MirrorMaker 2's file, kaf-relay's modes, and mirrors from the command line.

This module is imported at every start, also where nothing is forwarded: it says what there is, and imports nothing
heavy.

    `flows`     the engine: records of topics of one cluster go to topics of another one
    `mm2`       MirrorMaker 2's file, for a broker
    `relay`     kaf-relay's configuration: `leafcuttr relay`
    `mirror`    `leafcuttr mirror`
    `people`    health, metrics and paths of a broker that forwards; `leafcuttr flows`
    settings    what can be set
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.plugin import Plugin

if TYPE_CHECKING:
    import click

    from leafcuttr_sdk.admin import AdminRoute, HealthCheck
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.cli import CliCommand
    from leafcuttr_sdk.metrics import MetricReading
    from leafcuttr_sdk.services import Service, ServiceSpec
    from leafcuttr_sdk.settings import Setting

PLUGIN: Final = Plugin(
    name="forward",
    api_version=1,
    summary="Forwards topics from and to other clusters, by MirrorMaker's file or as a relay",
    enabled_by="lc.topic.forward.config",
)


def leafcuttr_register_settings() -> "Iterable[Setting]":
    from leafcuttr_forward.settings import settings

    return settings()


def leafcuttr_register_services() -> "Iterable[ServiceSpec]":
    from leafcuttr_sdk.services import ServiceSpec

    return [ServiceSpec("forward", _make)]


def leafcuttr_register_cli_commands() -> "Iterable[CliCommand]":
    from leafcuttr_sdk.cli import CliCommand

    return [
        CliCommand("relay", "copy topics to another cluster, as kaf-relay does", _relay),
        CliCommand("mirror", "copy a cluster, or a topic, to another one", _mirror),
        CliCommand("flows", "look at flows between clusters, pause and reset them", _flows),
    ]


def leafcuttr_register_admin_routes(broker: "Broker") -> "Iterable[AdminRoute]":
    from leafcuttr_forward.people.admin import routes

    return routes(broker)


def leafcuttr_register_health_checks(broker: "Broker") -> "Iterable[HealthCheck]":
    from leafcuttr_forward.people.admin import health_checks

    return health_checks(broker)


def leafcuttr_register_metrics(broker: "Broker") -> "Iterable[MetricReading]":
    from leafcuttr_forward.people.current import running_of
    from leafcuttr_forward.people.metrics import flow_readings

    return flow_readings(running_of(broker).all, broker.clock.now_ms)


def _make(broker: "Broker") -> "Service":
    from leafcuttr_forward.mm2.service import MirrorService

    return MirrorService(broker)


def _relay() -> "click.Command":
    from leafcuttr_forward.relay.command import relay

    return relay


def _mirror() -> "click.Command":
    from leafcuttr_forward.mirror.command import mirror

    return mirror


def _flows() -> "click.Command":
    from leafcuttr_forward.people.command import flows

    return flows
