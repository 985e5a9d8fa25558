"""Whether what implies a filter or validator (`implied_by`) are topic settings of its plugin."""

from collections.abc import Iterator
from typing import cast

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec, TopicContext
from leafcuttr_sdk.settings import Settings
from leafcuttr_sdk.testing.report import Check


def implied_checks(checked: object, context: TopicContext) -> Iterator[Check]:
    """The check, which names the settings, of a spec that has any."""
    if not isinstance(checked, RecordFilterSpec | ProduceValidatorSpec) or not checked.implied_by:
        return
    if not isinstance(cast("object", checked.implied_by), tuple):
        wrong = f"implied_by is {kind_of(checked.implied_by)}: it is a tuple of names, as in ('lc.plugin.NAME.check',)"
        yield Check("implied by", "what implies it are topic settings of its plugin", (wrong,))
        return
    problems = tuple(
        f"implied_by has {name}, which is no topic setting of the plugin: declare it in "
        "leafcuttr_register_topic_settings, and give the check the module of the plugin (plugin=...)"
        for name in checked.implied_by
        if not _is_declared(context.topic_settings, name)
    )
    yield Check("implied by", f"what implies it ({', '.join(checked.implied_by)}) is declared", problems)


def _is_declared(settings: Settings, name: str) -> bool:
    try:
        if name.endswith(">"):
            settings.family(name)
        else:
            settings.optional_text(name)
    except KeyError:
        return False
    except TypeError:  # of another type
        pass
    return True
