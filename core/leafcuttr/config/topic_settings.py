"""The settings of topics. Most override one of the broker's, and that one's row, in the table of its theme, declares
both (`ConfigKey.overridden_by`). The table below has only those that the broker has not.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from leafcuttr.config.checks import throttled_replicas
from leafcuttr.config.setting import BOOLEAN, LIST, ConfigKey, Effect, Override, scaled

_unused: Final = partial(ConfigKey, dynamic=True, effect=Effect.NONE)

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    _unused(
        "follower.replication.throttled.replicas",
        LIST,
        (),
        "Replicas whose followers are throttled, partition:broker, or *.",
        check=throttled_replicas,
        reason="there is no replication",
    ),
    _unused(
        "leader.replication.throttled.replicas",
        LIST,
        (),
        "Replicas whose leaders are throttled, partition:broker, or *.",
        check=throttled_replicas,
        reason="there is no replication",
    ),
    _unused(
        "remote.log.copy.disable",
        BOOLEAN,
        False,
        "Stop copying to tiered storage.",
        reason="there is no tiered storage",
    ),
    _unused(
        "remote.log.delete.on.disable",
        BOOLEAN,
        False,
        "Delete what is in tiered storage when it is switched off.",
        reason="there is no tiered storage",
    ),
    ConfigKey(
        "remote.storage.enable",
        BOOLEAN,
        False,
        "Keep older segments in tiered storage.",
        dynamic=True,
        effect=Effect.REFUSED,
        reason=(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with "
            "remote log storage."
        ),
    ),
)


def joined(broker: Sequence[ConfigKey]) -> list[ConfigKey]:
    """All of them, given the broker's rows: Kafka's by name, as Kafka lists them, then ours by theme."""
    rows = {setting.name: setting for setting in broker}
    overrides = (_row(rows, setting, setting.overridden_by) for setting in broker if setting.overridden_by)
    every = (*SETTINGS, *overrides)
    of_kafka = sorted((s for s in every if not s.is_ours), key=lambda setting: setting.name)
    return [*of_kafka, *(s for s in every if s.is_ours)]


def _row(rows: dict[str, ConfigKey], setting: ConfigKey, override: Override) -> ConfigKey:
    # A family has no value: what it gives to topics of some name is found by that name, not by synonyms.
    synonyms = () if setting.is_family else ((setting.name, 1), *setting.synonyms)
    defaults = (scaled(rows[name].default, factor) for name, factor in synonyms)
    return setting._replace(
        name=override.name,
        default=next((value for value in defaults if value is not None), override.default),
        help=override.help or setting.help,
        minimum=setting.minimum if override.minimum is None else override.minimum,
        synonyms=synonyms,
        overridden_by=None,
    )
