"""Settings of the core about plugins: which are left out, where single files of them are, which filters a topic has.

Plugins' own settings are declared with the SDK and come in through `declared`.
"""

from typing import Final

from leafcuttr.config.checks import topic_name
from leafcuttr.config.setting import BOOLEAN, LIST, STRING, ConfigKey, Override

_MATCH: Final = (
    "A topic's name comes before patterns (* for any text, ? for one character), a longer pattern before a shorter; "
    "patterns pass over names that begin with two underscores."
)

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    ConfigKey(
        "lc.filters.<topic or pattern>",
        LIST,
        None,
        f"The topic setting lc.filters for the topics of this name that have none of their own. {_MATCH}",
        dynamic=True,
        overridden_by=Override(
            "lc.filters",
            help=(
                "Record filters, by name and in order, that every record goes through before it is "
                "stored; without a value those of the broker's lc.filters.<topic or pattern>."
            ),
            default=(),
        ),
    ),
    ConfigKey(
        "lc.filters.dead.letter.topic",
        STRING,
        None,
        (
            "Where records go that a filter takes for dead letters, for topics that do not say it themselves; without "
            "a value to the topic whose name is theirs and .dlq."
        ),
        check=topic_name,
        dynamic=True,
        overridden_by=Override(
            "lc.filters.dead.letter.topic",
            help=(
                "Where records go that a filter takes for dead letters; without a value to the topic "
                "whose name is this one's and .dlq."
            ),
        ),
    ),
    ConfigKey(
        "lc.plugins.disabled",
        LIST,
        (),
        "Plugins, by name, that are left out although they are installed; they are not even imported.",
    ),
    ConfigKey(
        "lc.plugins.path",
        STRING,
        None,
        "A folder whose Python files are plugins too, each file is one, without a package.",
    ),
    ConfigKey(
        "lc.plugins.required",
        LIST,
        (),
        (
            "Plugins, by name, without which the broker does not start: each has to be installed, switched on and "
            "registered, and its services have to start; without another plugin a broker is degraded. name:failure "
            "names what of a plugin ends the start, instead of what it says itself: left-out, taken (its port), "
            "refused (a service says why it cannot start), failed (a service fails in another way)."
        ),
    ),
    ConfigKey(
        "lc.plugins.strict",
        BOOLEAN,
        False,
        "Do not start when a plugin cannot be imported or registered; otherwise it is left out with a warning.",
    ),
    ConfigKey(
        "lc.validators.<topic or pattern>",
        LIST,
        None,
        f"The topic setting lc.validators for the topics of this name that have none of their own. {_MATCH}",
        dynamic=True,
        overridden_by=Override(
            "lc.validators",
            help=(
                "Produce validators, by name and in order, that every record has to satisfy; without a "
                "value those of the broker's lc.validators.<topic or pattern>."
            ),
            default=(),
        ),
    ),
)
