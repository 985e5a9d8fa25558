"""Record filters and produce validators of the enabled plugins, handed to the topics that name them (`state.chains`).

Here a plugin's spec becomes what the chains need: an instance for one topic, with its settings, clock and logger.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from leafcuttr.config.topic import TopicConfig
from leafcuttr.errors import PluginError
from leafcuttr.plugins.implied import what_is_implied
from leafcuttr.plugins.settings_views import plugin_settings, topic_settings
from leafcuttr.runtime.plugin_parts import Part, PartError, call
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.chains import Instance, Make, Tables
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec, TopicContext
from leafcuttr_sdk.peek import own_peek

if TYPE_CHECKING:
    from leafcuttr.plugins.table import Plugins
    from leafcuttr_sdk import Broker

_METHODS: Final = {"record filter": "filter", "produce validator": "validate"}


def tables_of(core: Core, plugins: "Plugins", views: "Mapping[str, Broker]") -> Tables:
    """What stands behind the names that topics use. `views` are the plugins' views of the broker, by their names."""
    filters, validators = plugins.record_filters(), plugins.produce_validators()

    def maker(plugin: str, spec: RecordFilterSpec | ProduceValidatorSpec, kind: str) -> Make:
        return partial(_made, core, plugin, views[plugin], spec, kind)

    said = what_is_implied(core.settings.catalog, plugins.all)
    return Tables(
        {name: maker(one.name, spec, "record filter") for name, (one, spec) in filters.items()},
        {name: maker(one.name, spec, "produce validator") for name, (one, spec) in validators.items()},
        *said,
    )


def _made(
    core: Core,
    plugin: str,
    view: "Broker",
    spec: RecordFilterSpec | ProduceValidatorSpec,
    kind: str,
    topic: str,
    config: TopicConfig,
) -> Instance | None:
    """An instance for a topic, or None if its settings need none. Raises PartError. Without an instance nothing stays
    that it has registered."""
    part = Part(plugin, f"{kind} {spec.name} of topic {topic}")
    peek = spec.peek if isinstance(spec, ProduceValidatorSpec) else None
    method = _METHODS[kind] if peek is None else "validate_batch"
    ends: list[Callable[[], None]] = []
    context = TopicContext(
        topic,
        topic_settings(core.settings, plugin, config),
        plugin_settings(core.settings, plugin, ends),
        core.clock,
        logging.getLogger(f"leafcuttr.plugin.{plugin}"),
        view,
        view.schemas,
    )
    try:
        made: Any = call(part, spec.make, context)
        if made is not None or not spec.implied_by:
            found = call(part, _method, made, method)
            if peek is not None:
                peek = call(part, own_peek, made, peek)
            return Instance(plugin, found, ends, peek)
    except PartError:
        for end in ends:
            end()
        raise
    for end in ends:
        end()
    return None


def _method(made: object, name: str) -> Callable[[Any], Any]:
    method: Callable[[Any], Any] | None = getattr(made, name, None)
    if not callable(method):
        raise PluginError(f"what it makes is {kind_of(made)} and has no method {name}")
    return method
