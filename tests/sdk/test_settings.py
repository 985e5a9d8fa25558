"""How settings are read: by one class, in the broker and in plugins."""

import inspect

import pytest

from leafcuttr.config.settings import Settings as BrokerSettings
from leafcuttr.plugins.settings_views import PluginSettings, TopicSettings
from leafcuttr_sdk import Setting, Settings, Type
from leafcuttr_sdk.settings import FindingLevel, SettingFinding, Value, Values
from leafcuttr_sdk.testing import fixed_settings
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


class Given(Values):
    def __init__(self, **values: Value) -> None:
        self._values = values


OF_EACH_TYPE: list[Value] = [True, False, 0, 7, 0.0, 2.5, "", "text", (), ("a", "b")]
TAKES: dict[str, type] = {
    "bool": bool,
    "int": int,
    "float": float,
    "text": str,
    "optional_text": str,
    "list": tuple,
}


@pytest.mark.parametrize("name", ACCESSORS)
@pytest.mark.parametrize("value", OF_EACH_TYPE, ids=repr)
def test_an_accessor_returns_values_of_its_type_and_refuses_all_others(name: str, value: Value) -> None:
    """A boolean is no int, although it is one in Python, nor is an int a float."""
    read = getattr(Given(a=value), name)
    if type(value) is TAKES[name]:
        assert read("a") is value
    else:
        with pytest.raises(TypeError, match=r"a is (not )?of type"):
            read("a")
    with pytest.raises(KeyError):
        read("b")


@pytest.mark.parametrize("name", ACCESSORS)
def test_only_optional_text_reads_what_is_not_set(name: str) -> None:
    read = getattr(Given(a=None), name)
    if name == "optional_text":
        assert read("a") is None
    else:
        with pytest.raises(ValueError if name == "text" else TypeError):
            read("a")


def test_fixed_settings_refuse_what_a_broker_would_refuse_together() -> None:
    def less(name: str, settings: Settings) -> str | None:
        return "it is less than lc.x.least" if settings.int(name) < settings.int("lc.x.least") else None

    declared = [
        Setting("lc.x.most", Type.INT, 9, "", check_with_others=less),
        Setting("lc.x.least", Type.INT, 1, ""),
        Setting("lc.x.of.<thing>", Type.STRING, None, ""),
    ]
    assert fixed_settings(declared, {"lc.x.least": 20}).int("lc.x.most") == 9, "it was not given"
    # The order in which they are given does not matter.
    for values in ({"lc.x.most": 2, "lc.x.least": 3}, {"lc.x.least": 3, "lc.x.most": 2}):
        with pytest.raises(ValueError, match=r"^lc\.x\.most: it is less than lc\.x\.least$"):
            fixed_settings(declared, values)
    with pytest.raises(ValueError, match=r"there has to be something in the place of <thing>$"):
        fixed_settings(declared, {"lc.x.of.": "a"})


def test_fixed_settings_refuse_a_file_that_a_broker_would_refuse() -> None:
    def lines(name: str, settings: Settings) -> list[SettingFinding]:
        level = FindingLevel(settings.text(name))
        return [SettingFinding(FindingLevel.NOTE, "a:1: b"), SettingFinding(level, "a:2: c")]

    declared = [Setting("lc.x.file", Type.STRING, None, "", check_file=lines)]
    assert fixed_settings(declared, {"lc.x.file": "warning"}).text("lc.x.file") == "warning"
    with pytest.raises(ValueError, match=r"^a:2: c$"):
        fixed_settings(declared, {"lc.x.file": "error"})
