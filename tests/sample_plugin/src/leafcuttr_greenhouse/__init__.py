"""The light module that the entry point names: settings and hooks; all work is imported when it is needed."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from leafcuttr_sdk import (
    AdminRoute,
    Authenticator,
    AuthenticatorSpec,
    Authorizer,
    AuthorizerSpec,
    Broker,
    CliCommand,
    HealthCheck,
    MetricReading,
    Peek,
    Plugin,
    ProduceValidatorSpec,
    RecordFilterSpec,
    RecordFormat,
    Service,
    ServiceSpec,
    Setting,
    Settings,
    StartFailure,
    Type,
    authentication_settings,
    serving_settings,
    websocket_settings,
)
from leafcuttr_sdk.settings import Value
from leafcuttr_sdk.web import web_settings

if TYPE_CHECKING:
    import click

PREFIX = "lc.plugin.greenhouse"
PAGE = f"{PREFIX}.page"
TOPIC = f"{PREFIX}.topic"
TOKEN = f"{PREFIX}.token"
GARDENERS = f"{PREFIX}.gardeners"
LOWEST = f"{PREFIX}.lowest"
HIGHEST = f"{PREFIX}.highest"
ZONE = f"{PREFIX}.zone.<sensor>"

LAMP = f"{PREFIX}.lamp"
WEBSOCKET = f"{PREFIX}.ws"

PLUGIN = Plugin(
    "greenhouse",
    1,
    "readings of a greenhouse, by line and by record",
    api_minor=3,  # the first with authorizers
    stops_start=(StartFailure.LEFT_OUT, StartFailure.TAKEN, StartFailure.REFUSED),
    optional_hooks=("leafcuttr_register_panels",),
)


def leafcuttr_register_settings() -> Iterable[Setting]:
    yield Setting(TOPIC, Type.STRING, "greenhouse", "The topic that readings by line go to.")
    yield Setting(TOKEN, Type.PASSWORD, None, "What stations prove that they know.")
    yield Setting(GARDENERS, Type.LIST, (), "Users that may read the topic where the authorizer is in use.")
    yield Setting(
        LAMP, Type.BOOLEAN, False, "Whether the program that controls the lamp runs beside the broker."
    )
    yield Setting(
        ZONE, Type.STRING, None, "The zone of this sensor, for the header `zone`.", check_member=_why_no_zone
    )
    yield from serving_settings(PREFIX, 0)
    yield from websocket_settings(WEBSOCKET, -1, "127.0.0.1")
    yield from authentication_settings(PREFIX, ["greenhouse-token"], ways=["none", "sasl"])
    yield from web_settings(PAGE, -1)


def _why_no_zone(sensor: str, zone: Value) -> str | None:
    return None if sensor.isdecimal() else f"{sensor!r} is no sensor: they have numbers"


def leafcuttr_register_panels() -> Iterable[str]:
    """Of a broker that is newer than those of today, which do not call it."""
    return ["latest"]


def leafcuttr_register_topic_settings() -> Iterable[Setting]:
    yield Setting(LOWEST, Type.DOUBLE, -40.0, "The filter plausible drops readings below.", unit="°C")
    yield Setting(HIGHEST, Type.DOUBLE, 60.0, "The filter plausible refuses readings above.", unit="°C")


def leafcuttr_register_services() -> Iterable[ServiceSpec]:
    def make(broker: Broker) -> Service:
        from leafcuttr_greenhouse.station import Station

        return Station(broker)

    yield ServiceSpec("greenhouse", make)
    yield ServiceSpec("greenhouse-page", _make_page, needs=("greenhouse",))
    yield ServiceSpec("greenhouse-lamp", _make_lamp)


def _make_page(broker: Broker) -> Service:
    if broker.settings.int(f"{PAGE}.port") < 0:
        from leafcuttr_greenhouse.closed import Closed

        return Closed()
    from leafcuttr_greenhouse.page import Page

    return Page(broker)


def _make_lamp(broker: Broker) -> Service:
    if not broker.settings.bool(LAMP):
        from leafcuttr_greenhouse.closed import Closed

        return Closed()
    from leafcuttr_greenhouse.lamp import Lamp

    return Lamp(broker)


def leafcuttr_register_authenticators(broker: Broker) -> Iterable[AuthenticatorSpec]:
    def make() -> Authenticator:
        from leafcuttr_greenhouse.shared_token import SharedToken

        return SharedToken(broker)

    mechanisms = ("CRAM-SHA256",)
    yield AuthenticatorSpec("greenhouse-token", "the token of stations", make, ("bearer",), mechanisms)


def leafcuttr_register_authorizers() -> Iterable[AuthorizerSpec]:
    def make(broker: Broker, changed: Callable[[], None]) -> Authorizer:
        from leafcuttr_greenhouse.gardeners import Gardeners

        return Gardeners(broker)

    yield AuthorizerSpec("gardeners", "gardeners read the greenhouse's topic, and only it writes there", make)


def leafcuttr_register_record_filters(settings: Settings) -> Iterable[RecordFilterSpec]:
    from leafcuttr_greenhouse.of_zone import OfZone
    from leafcuttr_greenhouse.plausible import Plausible

    yield RecordFilterSpec(
        "plausible", "drops what is too cold, dead-letters what is too hot", Plausible, (LOWEST, HIGHEST)
    )
    for zone in sorted({str(zone) for zone in settings.family(ZONE).values()}):
        yield RecordFilterSpec(f"zone-{zone}", f"keeps the sensors of zone {zone}", partial(OfZone, zone))


def leafcuttr_register_produce_validators() -> Iterable[ProduceValidatorSpec]:
    from leafcuttr_greenhouse.reading import BYTES
    from leafcuttr_greenhouse.readings import Readings

    yield ProduceValidatorSpec("readings", "takes readings only", Readings, Peek(value_bytes=BYTES + 1))


def leafcuttr_register_record_formats() -> Iterable[RecordFormat]:
    from leafcuttr_greenhouse.reading_format import ReadingFormat

    yield ReadingFormat()


def leafcuttr_register_cli_commands() -> Iterable[CliCommand]:
    def load() -> "click.Command":
        from leafcuttr_greenhouse.command import command

        return command

    yield CliCommand("greenhouse", "send readings of a greenhouse, show the latest", load)


def leafcuttr_register_health_checks(broker: Broker) -> Iterable[HealthCheck]:
    from leafcuttr_greenhouse.admin import health_check

    yield health_check(broker)


def leafcuttr_register_metrics(broker: Broker) -> Iterable[MetricReading]:
    from leafcuttr_greenhouse.admin import sensors

    yield sensors(broker)


def leafcuttr_register_admin_routes(broker: Broker) -> Iterable[AdminRoute]:
    from leafcuttr_greenhouse.admin import latest, sensor

    yield latest(broker)
    yield sensor(broker)
