"""What can be set about bridges: `mqtt.bridge.<name>.<option>`. The options themselves are in `options`.

All options are members of one family, as a family's names differ in their last place only. It is of the type of
passwords, because some are: so no API returns their values.

Settings are declared at each start, also where MQTT is off: what checks their values is imported when there are some.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leafcuttr_mqtt.bridge.names import BRIDGE, OPTION_NAMES
from leafcuttr_sdk.settings import Setting, Type

if TYPE_CHECKING:
    from leafcuttr_sdk.settings import Settings, Value


def settings() -> Iterator[Setting]:
    """All settings of this part."""
    yield Setting(
        BRIDGE,
        Type.PASSWORD,
        None,
        "A bridge to another MQTT broker, as those of mosquitto, with the options "
        + ", ".join(OPTION_NAMES)
        + ".",
        check_member=_why_no_option,
        check_with_others=_why_no_bridge,
    )


def _why_no_option(place: str, value: "Value") -> str | None:
    from leafcuttr_mqtt.bridge.options import why_no_option

    return why_no_option(place, value)


def _why_no_bridge(name: str, values: "Settings") -> str | None:
    from leafcuttr_mqtt.bridge.options import why_no_bridge

    return why_no_bridge(name, values)
