"""Record filters and produce validators of the enabled plugins, handed to the topics that name them (`state.chains`),
and record filters outside of a topic's chain (`filter_chain`).

Here a plugin's spec becomes what the chains need: an instance for one topic, with its settings, clock and logger.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr.config.topic import TopicConfig, topic_config
from leafcuttr.errors import PluginError
from leafcuttr.plugins.implied import what_is_implied
from leafcuttr.plugins.settings_views import plugin_settings, topic_settings
from leafcuttr.runtime.plugin_parts import Part, PartError, call
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.chains import Instance, Make, Tables, why_unknown
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec, TopicContext
from leafcuttr_sdk.peek import own_peek

if TYPE_CHECKING:
    from leafcuttr.plugins.table import Plugins
    from leafcuttr_sdk import Broker, FilterChain

_METHODS: Final = {"record filter": "filter", "produce validator": "validate"}


def tables_of(core: Core, plugins: "Plugins", views: "Mapping[str, Broker]") -> Tables:
    """What stands behind the names that topics use. `views` are the plugins' views of the broker, by their names."""
    filters, validators = plugins.record_filters(), plugins.produce_validators()

    def maker(plugin: str, spec: RecordFilterSpec | ProduceValidatorSpec, kind: str) -> Make:
        return partial(_made, core, plugin, views[plugin], spec, kind)

    said = what_is_implied(core.settings, plugins.all)
    return Tables(
        {name: maker(one.name, spec, "record filter") for name, (one, spec) in filters.items()},
        {name: maker(one.name, spec, "produce validator") for name, (one, spec) in validators.items()},
        *said,
    )


def chain_maker(
    core: Core, plugins: "Plugins", views: "Mapping[str, Broker]"
) -> "Callable[[Sequence[str], str], FilterChain]":
    """What makes filters outside of topics' chains: of names, for a topic. Any thread. It raises PluginError."""
    makers: dict[str, Make] = {
        name: partial(_made, core, one.name, views[one.name], spec, "record filter", routes=True)
        for name, (one, spec) in plugins.record_filters().items()
    }

    def make(names: Sequence[str], topic: str) -> "FilterChain":
        known = core.topics.by_name.get(topic)
        return chain_of(names, topic, topic_config(core.settings) if known is None else known.config, makers)

    return make


def chain_of(
    names: Sequence[str], topic: str, config: TopicConfig, makers: Mapping[str, Make]
) -> "FilterChain":
    """A chain of these names. Raises PluginError; nothing of it stays then."""
    from leafcuttr.plugins.filter_chain import OutsideChain, OutsideFilter

    made: list[OutsideFilter] = []
    ends: list[Callable[[], None]] = []
    try:
        for name in names:
            if name not in makers:
                raise PluginError(why_unknown("record filter", name, makers))
            instance = makers[name](topic, config)
            if instance is not None:
                ends += instance.ends
                part = Part(instance.plugin, f"record filter {name} of topic {topic}")
                made.append(OutsideFilter(name, instance.call, part, instance.forget))
    except PartError as failed:
        OutsideChain((), ends).close()
        raise PluginError(why_not_made(failed)) from failed.cause
    except PluginError:
        OutsideChain((), ends).close()
        raise
    return OutsideChain(made, ends)


def why_not_made(failed: PartError) -> str:
    """A line on a filter that cannot be made."""
    return (
        f"{failed.part.name}: {failed.why}"
        if failed.is_said
        else f"{failed.part} cannot be made: {failed.why}"
    )


async def record_filters(core: Core, names: Sequence[str], topic: str) -> "FilterChain":
    """See `leafcuttr_sdk.Broker.record_filters`."""
    make = core.plugged.record_filters
    if make is None:
        return chain_of(names, topic, topic_config(core.settings), {})
    left = False

    def made() -> "FilterChain":
        chain = make(names, topic)
        if left:
            chain.close()
        return chain

    try:
        return await trio.to_thread.run_sync(made, abandon_on_cancel=True)
    except trio.Cancelled:
        left = True
        raise


def _made(
    core: Core,
    plugin: str,
    view: "Broker",
    spec: RecordFilterSpec | ProduceValidatorSpec,
    kind: str,
    topic: str,
    config: TopicConfig,
    *,
    routes: bool = False,
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
        routes,
    )
    try:
        made: Any = call(part, spec.make, context)
        if made is not None or not spec.implied_by:
            found = call(part, method_of, made, method)
            if peek is not None:
                peek = call(part, own_peek, made, peek)
            in_thread = call(part, in_thread_of, made, method)
            return Instance(plugin, found, ends, peek, call(part, forget_of, made), in_thread)
    except PartError:
        for end in ends:
            end()
        raise
    for end in ends:
        end()
    return None


def forget_of(made: object) -> Callable[[], None] | None:
    """What makes a filter forget the records that it remembers, if it remembers some."""
    forget: Callable[[], None] | None = getattr(made, "forget", None)
    return forget if callable(forget) else None


def in_thread_of(made: object, method: str) -> Callable[[Any], Any] | None:
    """What a filter or validator that may have to wait is called by in a thread, if it is one."""
    found: Callable[[Any], Any] | None = getattr(made, f"{method}_in_thread", None)
    return found if callable(found) else None


def method_of(made: object, name: str) -> Callable[[Any], Any]:
    """Raises PluginError."""
    method: Callable[[Any], Any] | None = getattr(made, name, None)
    if not callable(method):
        raise PluginError(f"what it makes is {kind_of(made)} and has no method {name}")
    return method
