"""Which topics have produce validators and record filters, and their chains (`leafcuttr.log.append.chain`).

A topic names them in its settings, or has a setting that implies them (`implied_parts`); what stands behind a name is
in two tables, which `plugins.activation` hands over (`equip`). A topic never takes records past what it names: where a
name is unknown, or an instance cannot be made, or there are no tables yet, its chain refuses all. Internal topics have
no chain.

Instances are made for each topic, and made again when any of its settings changes: by a worker thread, which may import
what is heavy, before the topic is there or its change is. At the start, and when settings of the broker change, it is
done on the event loop, as everything else here.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import trio

from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import TopicConfig
from leafcuttr.errors import InvalidConfig, InvalidTopic, PluginError
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError
from leafcuttr.state import topic_names
from leafcuttr.state.implied_parts import FILTERS as FILTERS
from leafcuttr.state.implied_parts import KINDS, Implied, ImpliedParts, Unasked, WantedParts
from leafcuttr.state.implied_parts import VALIDATORS as VALIDATORS
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.topics import Topic, Topics

if TYPE_CHECKING:
    from leafcuttr.log.append.chain.chain import Chain, Step, Tally
    from leafcuttr.log.append.chain.dead_letters import Letters
    from leafcuttr_sdk.peek import Peek

DEAD_LETTER_TOPIC: Final = "lc.filters.dead.letter.topic"
DEAD_LETTER_SUFFIX: Final = ".dlq"


class Instance(NamedTuple):
    """A validator or filter of one topic: whose it is, what is called with each record (or with each batch, as `peek`
    shows it), what to call when it is not used any more, what makes a filter forget records, and what one that may have
    to wait is called by in a thread, with all records of a batch."""

    plugin: str
    call: "Callable[[Any], Any]"
    ends: Sequence[Callable[[], None]] = ()
    peek: "Peek | None" = None
    forget: Callable[[], None] | None = None
    in_thread: "Callable[[Any], Any] | None" = None


Make: TypeAlias = Callable[[str, TopicConfig], Instance | None]
"""Makes an instance for a topic of this name and these settings, in any thread; None if these settings need none.
Raises PartError."""

logger = logging.getLogger(__name__)


def why_unknown(kind: str, name: str, known: Collection[str]) -> str:
    """That there is no filter or validator of this name, with the nearest of those that are `known`."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"there is no {kind} {name}; did you mean {near[0]}?"
    there_are = f"there are {', '.join(sorted(known))}" if known else f"no plugin that is on has a {kind}"
    return f"there is no {kind} {name}; {there_are}"


class Tables(NamedTuple):
    """What stands behind the names, and which of it topic settings imply: `implied` is what the plugins of `said_by`
    have said, by their names, `absent` what became of installed ones that are not on, `unasked` are those that say it
    later."""

    filters: Mapping[str, Make] = {}
    validators: Mapping[str, Make] = {}
    implied: Sequence[Implied] = ()
    said_by: Collection[str] = ()
    absent: Mapping[str, str] = {}
    unasked: Sequence[Unasked] = ()


class _Made(NamedTuple):
    """A chain, the settings that it was made for, what these want, and how to let go of its instances."""

    config: TopicConfig
    wanted: WantedParts
    chain: "Chain"
    ends: Sequence[Callable[[], None]]

    def end(self) -> None:
        for end in self.ends:
            end()


class Chains:
    """The chains of all topics. `tallies` count by topic, setting (FILTERS or VALIDATORS) and name, for as long as
    there is a topic of that name."""

    def __init__(
        self,
        topics: Topics,
        settings: Settings,
        metadata: MetadataStore,
        post: "Callable[[Letters], None]",
    ) -> None:
        self.tallies: dict[tuple[str, str, str], Tally] = {}
        self._topics = topics
        self._settings = settings
        self._post = post
        self._tables: Tables | None = None
        self._implied = ImpliedParts(metadata, settings)
        self._made: dict[Topic, _Made] = {}
        self._prepared: dict[str, _Made] = {}  # for topics, by name, that are about to be created or changed
        self._complain = Complaints(logger)
        self._failures = Failures()
        topics.vets.append(self.vet)
        topics.prepares.append(self.prepare)
        topics.abandons.append(self._abandon)
        topics.on_changed.append(self._changed)
        topics.on_deleted.append(self._deleted)
        settings.on_change(lambda _: self._update_all())
        self._update_all()

    def equip(self, tables: Tables) -> None:
        """From now on these stand behind the names; every chain is made anew, and a warning logged for each that lacks
        something. Before listeners are open."""
        self._tables = tables
        overridden = [topic.overrides for topic in self._topics.by_name.values()]
        self._implied.replace(tables.implied, tables.said_by, tables.absent, overridden, tables.unasked)
        for topic in tuple(self._made):
            self._let_go(topic)
        self._update_all()
        for line in self.warnings():
            logger.warning("%s", line)

    def vet(self, topic: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Raise InvalidConfig, which names the nearest, if what a topic would override names what is not there. What it
        has already is let pass: a plugin may have gone, and other settings can be changed all the same."""
        for setting in KINDS:
            if setting in after and after[setting] != before.get(setting):
                self._check(setting, setting, after[setting])
        self._implied.vet(before, after)
        letters = after.get(DEAD_LETTER_TOPIC, "").strip()
        if letters and letters != before.get(DEAD_LETTER_TOPIC, "").strip():
            refusal = self._refuses_letters(topic, letters)
            if refusal is not None:
                raise InvalidConfig(
                    f"Invalid value {letters} for configuration {DEAD_LETTER_TOPIC}: {refusal}"
                )

    async def prepare(self, topic: str, config: TopicConfig) -> None:
        """Make what a topic needs that is about to have these settings."""
        self._forget_prepared(topic)
        wanted = self._implied.wanted(config, {})
        if wanted:
            self._prepared[topic] = await self._made_by_worker(topic, config, wanted)

    def vet_broker(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """The same for the families in the broker's own settings, and for defaults of topic settings, in one scope."""
        self._implied.vet(before, after)
        for name, text in after.items():
            if text != before.get(name) and name != DEAD_LETTER_TOPIC:
                for setting in KINDS:
                    if name.startswith(f"{setting}."):
                        self._check(setting, name, text)

    @property
    def closed(self) -> Iterator[str]:
        """The topics that take no records."""
        return (topic.name for topic, made in self._made.items() if made.chain.refusal is not None)

    @property
    def failing(self) -> Iterator[str]:
        """The topics of whose last batches a validator or filter has failed on each."""
        return (topic.name for topic, made in self._made.items() if made.chain.fails)

    @property
    def waiting(self) -> Iterator[str]:
        """The validators and filters that could not judge a batch yet, and what each waits for."""
        return (waits for made in self._made.values() if (waits := made.chain.readiness.waits))

    def warnings(self) -> Iterator[str]:
        """A line for each topic, or member of a family in the broker's settings, that names what is not there."""
        for topic, made in self._made.items():
            if made.chain.refusal is not None:
                yield f"topic {topic.name} takes no records: {made.chain.refusal}"
        for setting in KINDS:
            for member, value in self._settings.family(f"{setting}.<topic or pattern>").items():
                for name in value if isinstance(value, tuple) else ():
                    if name not in self._table(setting):
                        yield f"{setting}.{member}={name}: {self._unknown(setting, name)}; its topics take no records"

    # Steps of the above

    async def _made_by_worker(self, topic: str, config: TopicConfig, wanted: WantedParts) -> _Made:
        """Cancelled: what a plugin is at is not waited for."""
        left = False

        def make() -> _Made:
            made = self._make(topic, config, wanted)
            if left:
                made.end()
            return made

        try:
            return await trio.to_thread.run_sync(make, abandon_on_cancel=True)
        except trio.Cancelled:
            left = True
            raise

    def _check(self, setting: str, key: str, text: str) -> None:
        for name in (one.strip() for one in text.split(",")) if text.strip() else ():
            if name not in self._table(setting):
                raise InvalidConfig(
                    f"Invalid value {name} for configuration {key}: {self._unknown(setting, name)}"
                )

    def _table(self, setting: str) -> Mapping[str, Make]:
        tables = self._tables or Tables()
        return tables.filters if setting == FILTERS else tables.validators

    def _unknown(self, setting: str, name: str) -> str:
        return why_unknown(KINDS[setting], name, self._table(setting))

    def _changed(self, name: str) -> None:
        topic = self._topics.by_name.get(name)
        if topic is not None:
            self._update(topic)

    def _deleted(self, topic: Topic) -> None:
        self._let_go(topic)
        self._forget_tallies(topic.name)

    def _update_all(self) -> None:
        for topic in self._topics.by_name.values():
            self._update(topic)

    def _update(self, topic: Topic) -> None:
        """Give the topic the chain that its settings name."""
        config = topic.config
        wanted = self._implied.wanted(config, topic.overrides)
        if topic.internal or not wanted:
            chain = None
            self._let_go(topic)
        else:
            made = self._made.get(topic)
            if made is None or (made.config, made.wanted) != (config, wanted):
                self._let_go(topic)
                prepared = self._prepared.get(topic.name)
                if prepared is not None and (prepared.config, prepared.wanted) == (config, wanted):
                    made = self._prepared.pop(topic.name)
                else:
                    made = self._make(topic.name, config, wanted)
                self._made[topic] = made
            chain = made.chain
        self._forget_prepared(topic.name)
        for partition in topic.partitions:
            if partition.log.chain is not chain:
                partition.log.use_chain(chain)

    def _let_go(self, topic: Topic) -> None:
        made = self._made.pop(topic, None)
        if made is not None:
            made.end()

    def _abandon(self, topic: str) -> None:
        """What was prepared for did not come about; there may be no such topic either."""
        self._forget_prepared(topic)
        if topic not in self._topics.by_name:
            self._forget_tallies(topic)

    def _forget_tallies(self, topic: str) -> None:
        for key in [key for key in self.tallies if key[0] == topic]:
            del self.tallies[key]

    def _forget_prepared(self, topic: str) -> None:
        prepared = self._prepared.pop(topic, None)
        if prepared is not None:
            prepared.end()

    def _make(self, topic: str, config: TopicConfig, wanted: WantedParts) -> _Made:
        """Does not fail: a chain that lacks something refuses every batch and says so. Any thread."""
        from leafcuttr.log.append.chain.chain import Chain

        ends: list[Callable[[], None]] = []
        steps: dict[str, list[Step]] = {VALIDATORS: [], FILTERS: []}
        refusal = "its record filters have not been made yet" if self._tables is None else wanted.lack or None
        names = {VALIDATORS: wanted.validators, FILTERS: wanted.filters}
        for setting, made in steps.items():
            for name in names[setting] if refusal is None else ():
                try:
                    step = self._step(topic, config, setting, name, ends)
                except PluginError as error:
                    refusal = str(error)
                    break
                if step is not None:
                    made.append(step)
        chain = Chain(
            topic,
            validators=steps[VALIDATORS],
            filters=steps[FILTERS],
            dead_letter_topic=config.lc_filters_dead_letter_topic or topic + DEAD_LETTER_SUFFIX,
            refuses_letters=lambda name: self._refuses_letters(topic, name),
            post=self._post,
            complain=self._complain,
            failures=self._failures,
            refusal=refusal,
        )
        return _Made(config, wanted, chain, ends)

    def _step(
        self, topic: str, config: TopicConfig, setting: str, name: str, ends: list[Callable[[], None]]
    ) -> "Step | None":
        """Raises PluginError."""
        from leafcuttr.log.append.chain.chain import Step, Tally

        make, kind = self._table(setting).get(name), KINDS[setting]
        if make is None:
            raise PluginError(self._unknown(setting, name))
        try:
            instance = make(topic, config)
        except PartError as failed:
            logger.debug("making the %s %s for %s", kind, name, topic, exc_info=failed.cause)
            if failed.is_said:
                raise PluginError(f"{kind} {name}: {failed.why}") from None
            raise PluginError(
                f"{kind} {name} of plugin {failed.part.plugin} cannot be made: {failed.why}"
            ) from None
        if instance is None:
            return None
        plugin, call, own_ends, peek, forget, in_thread = instance
        ends += own_ends
        part = Part(plugin, f"{kind} {name} of topic {topic}")
        tally = self.tallies.setdefault((topic, setting, name), Tally())
        return Step(name, call, tally, part, peek, forget, in_thread)

    def _refuses_letters(self, source: str, target: str) -> str | None:
        """Why dead letters of one topic cannot go to another."""
        if target == source:
            return "a topic cannot be its own dead-letter topic"
        topic = self._topics.by_name.get(target)
        if target in topic_names.INTERNAL or (topic is not None and topic.internal):
            return "it is an internal topic"
        try:
            topic_names.check(target)
        except InvalidTopic as error:
            return str(error)
        return None
