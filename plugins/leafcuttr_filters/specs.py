"""What the broker gets: a spec for each filter that the settings name."""

from collections.abc import Iterator
from functools import partial

from leafcuttr_filters.definitions.parsing import parse_definition
from leafcuttr_filters.settings import FILTER
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.filters import RecordFilter, RecordFilterSpec, TopicContext
from leafcuttr_sdk.settings import Settings


def filters(settings: Settings) -> Iterator[RecordFilterSpec]:
    for name, text in settings.family(FILTER).items():
        yield RecordFilterSpec(name, str(text), partial(_make, name, str(text)))


def _make(name: str, text: str, context: TopicContext) -> RecordFilter:
    """Raises PluginError."""
    from leafcuttr_filters.making import make

    try:
        return make(parse_definition(text), context)
    except ValueError as error:
        raise PluginError(f"{FILTER.partition('<')[0]}{name}={text}: {error}") from None
