"""The settings of topics whose records are checked against schemas: ours, and Confluent Server's by their names.

Where one of ours has its default value, Confluent's holds: whether a topic sets that itself is not known. Confluent's
`true` means `id`, as it does there.
"""

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.settings import Setting, Type

if TYPE_CHECKING:
    from leafcuttr_sdk.settings import Settings

PartName: TypeAlias = Literal["key", "value"]
PARTS: Final[tuple[PartName, ...]] = ("key", "value")
ON_ERROR: Final = "lc.schema.validation.on.error"
_DLQ: Final = "dlq"
_CLASSES: Final = "io.confluent.kafka.serializers.subject."


class Check(Enum):
    """How far records are checked."""

    OFF = "off"
    ID = "id"
    FULL = "full"


class Strategy(Enum):
    """How the name of a subject is made."""

    TOPIC = "topic"
    RECORD = "record"
    TOPIC_RECORD = "topic-record"


_OF_CLASS: Final = {
    f"{_CLASSES}TopicNameStrategy": Strategy.TOPIC,
    f"{_CLASSES}RecordNameStrategy": Strategy.RECORD,
    f"{_CLASSES}TopicRecordNameStrategy": Strategy.TOPIC_RECORD,
}


class PartOptions(NamedTuple):
    """What holds for the keys, or the values, of a topic."""

    part: PartName
    check: Check
    strategy: Strategy


def check_name(part: PartName) -> str:
    return f"lc.schema.validation.{part}"


def strategy_name(part: PartName) -> str:
    return f"lc.schema.subject.strategy.{part}"


def confluent_check_name(part: PartName) -> str:
    return f"confluent.{part}.schema.validation"


def confluent_strategy_name(part: PartName) -> str:
    return f"confluent.{part}.subject.name.strategy"


def topic_settings() -> Iterator[Setting]:
    """All settings of topics that the plugin has."""
    for part in PARTS:
        yield Setting(
            check_name(part),
            Type.STRING,
            Check.OFF.value,
            f"Whether {part}s have to have a schema of the registry: off, id (its id, which is that of a schema of the "
            "subject) or full (each is decoded too).",
            choices=tuple(each.value for each in Check),
        )
        yield Setting(
            strategy_name(part),
            Type.STRING,
            Strategy.TOPIC.value,
            f"The subject of the schemas of {part}s: topic (`<topic>-{part}`), record (the full name of the record) or "
            "topic-record (`<topic>-<full name>`).",
            choices=tuple(each.value for each in Strategy),
        )
        yield Setting(
            confluent_check_name(part),
            Type.BOOLEAN,
            False,
            f"Confluent's name: true is `{check_name(part)}=id` where that is {Check.OFF.value}.",
        )
        yield Setting(
            confluent_strategy_name(part),
            Type.STRING,
            next(iter(_OF_CLASS)),
            f"Confluent's name for `{strategy_name(part)}`, with the classes of Confluent's strategies: it holds where "
            f"that is {Strategy.TOPIC.value}.",
            choices=tuple(_OF_CLASS),
        )
    yield Setting(
        ON_ERROR,
        Type.STRING,
        "reject",
        "What becomes of a record that fails the check: reject (its producer gets INVALID_RECORD) or dlq (it goes to "
        "the dead-letter topic, the others are stored).",
        choices=("reject", _DLQ),
    )


CHECKS: Final = tuple(name(part) for part in PARTS for name in (check_name, confluent_check_name))
"""The settings that make a topic check its records."""


def options_of(settings: "Settings", part: PartName) -> PartOptions:
    """What a topic's settings say, taken together."""
    check = Check(settings.text(check_name(part)))
    if check is Check.OFF and settings.bool(confluent_check_name(part)):
        check = Check.ID
    strategy = Strategy(settings.text(strategy_name(part)))
    if strategy is Strategy.TOPIC:
        strategy = _OF_CLASS[settings.text(confluent_strategy_name(part))]
    return PartOptions(part, check, strategy)


def need_a_check(settings: "Settings") -> None:
    """For a validator that `lc.validators` names: where settings imply it there is one. Raises PluginError."""
    if all(options_of(settings, part).check is Check.OFF for part in PARTS):
        raise PluginError(
            f"it has nothing to check: set {' or '.join(map(check_name, PARTS))} of the topic to id or full; either "
            "implies it, without lc.validators"
        )


def need_dead_letters(settings: "Settings") -> None:
    """For the filter, which `lc.filters` may name. Raises PluginError."""
    if not goes_to_dead_letters(settings):
        raise PluginError(
            f"it sets nothing aside: set {ON_ERROR} of the topic to {_DLQ}, which implies it, without lc.filters"
        )


def goes_to_dead_letters(settings: "Settings") -> bool:
    """Whether bad records are set aside."""
    return settings.text(ON_ERROR) == _DLQ
