"""Record filters and produce validators of the enabled plugins, handed to the topics that name them (`state.chains`).

Here a plugin's spec becomes what the chains need: an instance for one topic, with its settings, clock and logger.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from leafcuttr.config.topic import TopicConfig
from leafcuttr.errors import PluginError
from leafcuttr.plugins.settings_views import plugin_settings, topic_settings
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.chains import Instance, Tables
from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec, TopicContext

if TYPE_CHECKING:
    from leafcuttr.plugins.table import Plugins


def tables_of(core: Core, plugins: "Plugins") -> Tables:
    """What stands behind the names that topics use."""
    return Tables(
        {n: partial(_made, core, one.name, s, "filter") for n, (one, s) in plugins.record_filters().items()},
        {
            n: partial(_made, core, one.name, s, "validate")
            for n, (one, s) in plugins.produce_validators().items()
        },
    )


def _made(
    core: Core,
    plugin: str,
    spec: RecordFilterSpec | ProduceValidatorSpec,
    method: str,
    topic: str,
    config: TopicConfig,
) -> Instance:
    """An instance for a topic. Raises what `make` raises; PluginError if what it returns cannot be one."""
    ends: list[Callable[[], None]] = []
    context = TopicContext(
        topic,
        topic_settings(core.settings, plugin, config),
        plugin_settings(core.settings, plugin, ends),
        core.clock,
        logging.getLogger(f"leafcuttr.plugin.{plugin}"),
    )
    made: Any = spec.make(context)
    call = getattr(made, method, None)
    if not callable(call):
        raise PluginError(f"what it makes is of type {type(made).__name__} and has no method {method}")
    return Instance(call, ends)
