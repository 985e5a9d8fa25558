"""How settings are read: by one class, whoever reads them."""

import inspect

import pytest

from leafcuttr.config.settings import Settings as BrokerSettings
from leafcuttr.plugins.settings_views import PluginSettings, TopicSettings
from leafcuttr_sdk import Settings
from leafcuttr_sdk.settings import Values
from leafcuttr_sdk.testing.context import FixedSettings

CONTRACT = [name for name in vars(Settings) if not name.startswith("_")]
ACCESSORS = [name for name in CONTRACT if name in vars(Values)]


def test_the_contract_is_the_accessors_and_what_each_finds_in_its_own_way() -> None:
    assert set(CONTRACT) - set(ACCESSORS) == {"family", "on_change"}
    assert {name for name in vars(Values) if not name.startswith("_")} == set(ACCESSORS)


@pytest.mark.parametrize("name", ACCESSORS)
def test_an_accessor_takes_and_returns_what_the_contract_says(name: str) -> None:
    def signature(of: type) -> str:
        return str(inspect.signature(getattr(of, name))).replace("builtins.", "")

    assert signature(Values) == signature(Settings)


@pytest.mark.parametrize("reader", [BrokerSettings, PluginSettings, TopicSettings, FixedSettings])
def test_everybody_reads_with_the_same_accessors(reader: type) -> None:
    for name in ACCESSORS:
        assert getattr(reader, name) is getattr(Values, name)
    assert {"family", "on_change"} <= {name for base in reader.__mro__ for name in vars(base)}
