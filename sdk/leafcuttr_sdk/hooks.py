"""The hooks: functions that a plugin's module may define, under exactly these names and with any of these arguments.

Each is called once, at the start, and returns objects that the broker then uses directly. It is called on a thread that
is not the event loop's, and may take ten seconds (`Plugin.hook_limit_s`). None has to be there. A function whose name
begins with `leafcuttr_` and is none of these stops the plugin with a line that names the nearest. Hooks that get the
broker are called when the plugin is on and the broker's data is open, before its listeners are.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leafcuttr_sdk.admin import AdminRoute, HealthCheck
    from leafcuttr_sdk.authentication import AuthenticatorSpec
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.cli import CliCommand
    from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec
    from leafcuttr_sdk.formats import RecordFormat
    from leafcuttr_sdk.metrics import MetricReading
    from leafcuttr_sdk.schemas import SchemaFormat, SchemaProvider
    from leafcuttr_sdk.security import AuthorizerSpec
    from leafcuttr_sdk.services import ServiceSpec
    from leafcuttr_sdk.settings import Setting, Settings


def leafcuttr_register_settings() -> "Iterable[Setting]":
    """The plugin's settings of the broker. Called at every start, first of all hooks, also where the plugin is off."""
    return ()


def leafcuttr_register_topic_settings() -> "Iterable[Setting]":
    """The plugin's settings of topics. Called at every start, also where the plugin is off."""
    return ()


def leafcuttr_register_services() -> "Iterable[ServiceSpec]":
    """What the plugin runs. Called at the start where the plugin is on; the services are made later."""
    return ()


def leafcuttr_register_record_filters(settings: "Settings") -> "Iterable[RecordFilterSpec]":
    """Filters that topics can name in `lc.filters`, and relays. Called at the start where the plugin is on; instances
    are made for each topic that names one. `settings` are the plugin's, for one whose filters a person names there."""
    return ()


def leafcuttr_register_produce_validators() -> "Iterable[ProduceValidatorSpec]":
    """Validators that topics can name in `lc.validators`. Called at the start where the plugin is on; instances are
    made for each topic that names one."""
    return ()


def leafcuttr_register_record_formats() -> "Iterable[RecordFormat]":
    """Formats that `--format` of `produce`, `consume` and `dump` can name. Called by the command line only,
    whether or not a broker has the plugin on."""
    return ()


def leafcuttr_register_schema_formats() -> "Iterable[SchemaFormat]":
    """Formats of schemas that a schema registry knows. Called at the start where the plugin is on. Two of one name are
    refused: the plugin that comes second is left out."""
    return ()


def leafcuttr_register_cli_commands() -> "Iterable[CliCommand]":
    """Commands of `leafcuttr`. Called by the command line, and never by `leafcuttr serve`, whether or not a broker has
    the plugin on."""
    return ()


def leafcuttr_register_health_checks(broker: "Broker") -> "Iterable[HealthCheck]":
    """Checks that `/health` shows. Called at the start where the plugin is on, before services are made."""
    return ()


def leafcuttr_register_metrics(broker: "Broker") -> "Iterable[MetricReading]":
    """Metrics whose values are read at each scrape. Called at the start where the plugin is on, before services are
    made. Those that are counted as things happen are made with `Broker.metrics`."""
    return ()


def leafcuttr_register_admin_routes(broker: "Broker") -> "Iterable[AdminRoute]":
    """Paths that the admin port answers, below `/plugins/<name>/`. Called at the start where the plugin is on, before
    services are made."""
    return ()


def leafcuttr_register_authenticators(broker: "Broker") -> "Iterable[AuthenticatorSpec]":
    """Authenticators that services can name in `<prefix>.authenticators`. `lc.sasl.mechanisms` can name their SASL
    mechanisms. Called at the start where the plugin is on, before services are made; instances are made for each
    service that names one, and one for the listeners of Kafka's clients."""
    return ()


def leafcuttr_register_authorizers() -> "Iterable[AuthorizerSpec]":
    """Authorizers that `lc.authorizer` can name. Called at the start where the plugin is on; the one that is named is
    made once the broker's data is open."""
    return ()


def leafcuttr_register_schema_provider(broker: "Broker") -> "Iterable[SchemaProvider]":
    """Where this broker's plugins find schemas: `Broker.schemas`. Called at the start where the plugin is on, before
    services are made; what it returns has at most one. Of two plugins that bring one, the second is left out."""
    return ()
