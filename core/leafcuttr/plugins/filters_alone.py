"""Record filters without a broker, for commands: of the plugins that some settings switch on, in this process.

What such a filter reads of a broker is what it would read in a test of its own: one topic with one partition, and
metrics that nothing shows.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic, time_ns
from typing import TYPE_CHECKING

from leafcuttr.config.findings import Level
from leafcuttr.config.topic import topic_config
from leafcuttr.errors import ConfigError, PluginError
from leafcuttr.plugins.catalogue import examine_all
from leafcuttr.plugins.filters import chain_of, forget_of, method_of
from leafcuttr.plugins.loaded import PluginState
from leafcuttr.plugins.settings_views import plugin_settings, topic_settings
from leafcuttr.runtime.plugin_parts import Part, call
from leafcuttr.state.chains import Instance, Make
from leafcuttr_sdk.filters import TopicContext

if TYPE_CHECKING:
    from leafcuttr.config.settings import Settings
    from leafcuttr.config.topic import TopicConfig
    from leafcuttr_sdk import FilterChain, RecordFilterSpec


class FiltersAlone:
    """The filters of the plugins that these settings switch on, and variables of the environment. Raises ConfigError
    and StartError, with one line."""

    def __init__(self, given: Mapping[str, str], environ: Mapping[str, str]) -> None:
        settings, findings, plugins = examine_all(
            None, environ, [f"{key}={text}" for key, text in given.items()]
        )
        for finding in findings:
            if finding.level is Level.ERROR and (
                finding.key in given or settings.catalog.owner_of(finding.key)
            ):
                raise ConfigError(finding.line)
        self._settings = settings
        self._failed = [one for one in plugins.all if one.state is PluginState.FAILED]
        self._makers: dict[str, Make] = {
            name: partial(_made, settings, one.name, spec)
            for name, (one, spec) in plugins.record_filters().items()
        }

    def chain(self, names: Sequence[str], topic: str) -> "FilterChain":
        """See `leafcuttr_sdk.CommandContext.record_filters`. Raises PluginError with one line."""
        missing = next((name for name in names if name not in self._makers), None)
        if missing is not None and self._failed:
            raise PluginError(f"there is no record filter {missing}; {self._failed[0].line}")
        return chain_of(names, topic, topic_config(self._settings), self._makers)


def _made(
    settings: "Settings", plugin: str, spec: "RecordFilterSpec", topic: str, config: "TopicConfig"
) -> Instance | None:
    """Raises PartError."""
    from leafcuttr_sdk.testing.read_only import FixedBroker

    ends: list[Callable[[], None]] = []
    own = plugin_settings(settings, plugin, ends)
    logger, clock = logging.getLogger(f"leafcuttr.plugin.{plugin}"), _Clock()
    broker = FixedBroker(topic, own, clock, logger, plugin)
    of_topic = topic_settings(settings, plugin, config)
    context = TopicContext(topic, of_topic, own, clock, logger, broker, routes=True)
    part = Part(plugin, f"record filter {spec.name} of topic {topic}")
    made: object = call(part, spec.make, context)
    if made is None and spec.implied_by:
        return None
    return Instance(plugin, call(part, method_of, made, "filter"), ends, None, call(part, forget_of, made))


class _Clock:
    """The machine's, without a loop."""

    def now_ms(self) -> int:
        return time_ns() // 1_000_000

    def monotonic(self) -> float:
        return monotonic()
