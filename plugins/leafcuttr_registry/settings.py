"""The settings of the registry, and their values as what the code works with."""

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr_sdk.settings import Setting, Type
from leafcuttr_sdk.web.settings import web_settings

if TYPE_CHECKING:
    from leafcuttr_sdk.settings import Settings

PREFIX: Final = "lc.schema.registry"
PORT: Final = 8081
UNSTABLE: Final = "unstable.api.versions.enable"

_LIMITS: Final = {"max.request.bytes": 4 * 1024 * 1024}


class Answers(Enum):
    """Which answers are given where LeafCuttr's manual and Confluent's registry differ."""

    DEFAULT = "default"
    """The manual's, but for those that clients would read wrongly."""
    CONFLUENT = "confluent"
    MANUAL = "manual"


def settings() -> Iterator[Setting]:
    """All settings of the plugin."""
    yield Setting(f"{PREFIX}.enable", Type.BOOLEAN, False, "Serve a schema registry.")
    for setting in web_settings(PREFIX, PORT):
        if setting.name == f"{PREFIX}.authenticators":
            setting = setting._replace(default=("broker",))
        limit = _LIMITS.get(setting.name.removeprefix(f"{PREFIX}."))
        yield setting if limit is None else setting._replace(default=limit)
    yield Setting(
        f"{PREFIX}.answers",
        Type.STRING,
        Answers.DEFAULT.value,
        "Which answers the registry gives where LeafCuttr's manual and Confluent's registry differ: default (the "
        "manual's, unless clients would read them wrongly), confluent or manual.",
        choices=tuple(each.value for each in Answers),
    )
    yield Setting(
        UNSTABLE,
        Type.BOOLEAN,
        False,
        "Whether the schema registry answers POST /restart, which reads its topic anew.",
    )


class Options(NamedTuple):
    """The settings of the endpoints. Those of the server are `leafcuttr_sdk.web.settings.WebLimits`."""

    answers: Answers = Answers.DEFAULT
    unstable: bool = False


def read_options(values: "Settings") -> Options:
    return Options(Answers(values.text(f"{PREFIX}.answers")), values.bool(UNSTABLE))
