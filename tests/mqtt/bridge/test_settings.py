"""What is declared of bridges at each start: one family, whose members are checked by their options."""

from __future__ import annotations

import pytest

from leafcuttr.config.catalog import CORE, Catalog
from leafcuttr.config.declared import section
from leafcuttr.config.load import load_settings
from leafcuttr.errors import ConfigError
from leafcuttr_mqtt.bridge.names import BRIDGE, OPTION_NAMES
from leafcuttr_mqtt.bridge.options import OPTIONS, Address, read_bridges
from leafcuttr_mqtt.bridge.settings import settings
from leafcuttr_sdk.plugin import Plugin
from leafcuttr_sdk.settings import Type
from leafcuttr_sdk.testing import fixed_settings


def catalog(_: object = None) -> Catalog:
    return CORE.with_plugin(section(Plugin("mqtt", 1, "A part"), tuple(settings()), (), bundled=True))


def test_values_are_secrets_and_no_api_returns_them() -> None:
    (setting,) = settings()
    assert (setting.name, setting.type, setting.default) == (BRIDGE, Type.PASSWORD, None)


def test_all_options_are_named() -> None:
    assert list(OPTIONS) == list(OPTION_NAMES)
    (setting,) = settings()
    assert all(name in setting.help for name in OPTION_NAMES)


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        ("cloud.adress", "xyz", "after a bridge's name there is one of address, topics, "),
        ("cloud.address", "a:0", "allowed are addresses as broker-1:1883"),
    ],
)
def test_a_member_is_checked_by_its_option(place: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=rf"=\[hidden\] \(-o\): {why}"):
        load_settings(None, {}, [f"mqtt.bridge.{place}={value}"], catalog)


def test_from_the_environment_and_secret() -> None:
    given, warnings = load_settings(
        None,
        {
            "KAFKA_MQTT_BRIDGE_CLOUD_ADDRESS": "broker:1884",
            "KAFKA_MQTT_BRIDGE_CLOUD_TOPICS": "a/# both 1",
            "KAFKA_MQTT_BRIDGE_CLOUD_PASSWORD": "Hunter2",
            "KAFKA_MQTT_BRIDGE_CLOUD_USERNAME": "Me",
        },
        ["mqtt.bridge.Plant.address=plant", "mqtt.bridge.Plant.topics=b/# in"],
        catalog,
    )
    assert not warnings
    assert "Hunter2" not in repr(given)
    values = {f"mqtt.bridge.{place}": value for place, value in given.family(BRIDGE).items()}
    plant, cloud = read_bridges(fixed_settings(settings(), values))
    assert (plant.name, plant.addresses) == ("Plant", (Address("plant", 1883),))
    assert (cloud.name, cloud.user_name, cloud.password) == ("cloud", "Me", b"Hunter2")
