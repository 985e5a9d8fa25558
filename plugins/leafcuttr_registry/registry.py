"""The registry: its state with what reads and writes it. Every change is decided by `subjects`, one after the other,
written to `_schemas`, and answered when the state has it.

What waits for nothing reads `state` by itself.

Longer than other modules because every change that there is has its method here, and all of them take the same way to
the topic.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr_registry.checks import comparing
from leafcuttr_registry.checks.comparing import Asked, Earlier
from leafcuttr_registry.checks.reading import Checks
from leafcuttr_registry.checks.turns import of_request
from leafcuttr_registry.checks.work import Source
from leafcuttr_registry.inline_tags import TaggedPlace, Tags
from leafcuttr_registry.storage import topics
from leafcuttr_registry.storage.highest import HighestIds
from leafcuttr_registry.storage.reader import Reader, TopicGoneError
from leafcuttr_registry.storage.writer import Writer
from leafcuttr_registry.subjects import (
    associating,
    deleting,
    karapace,
    references,
    registering,
    scopes,
)
from leafcuttr_registry.subjects.config import LENIENT, POLICY, VALIDATE_FIELDS, Config
from leafcuttr_registry.subjects.content import Content, reserved_messages
from leafcuttr_registry.subjects.events import AssociationKey, ConfigKey, Event, SchemaKey
from leafcuttr_registry.subjects.names import DEFAULT, context_of, qualified, split
from leafcuttr_registry.subjects.refusals import (
    BUSY,
    STORE_FAILED,
    Incompatible,
    Refusal,
    invalid_schema,
    no_schema,
    no_subject,
)
from leafcuttr_registry.subjects.registering import Registration
from leafcuttr_registry.subjects.state import Association, State, Version
from leafcuttr_registry.subjects.versions import LATEST

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker


class Registry:
    """One start of it. `changed` is told of ids whose answers hold no longer."""

    def __init__(self, broker: "Broker") -> None:
        self.broker: Final = broker
        self.stale: Final[set[tuple[str, int]]] = set()
        self.state: Final = State(lambda context, id: self.stale.add((context, id)))
        self.checks: Final = Checks(broker)
        self.reader: Final = Reader(broker, self.state)
        self._writer = Writer(broker, self.reader)
        self._highest = HighestIds(broker, self.state)
        self._writing = trio.Lock()
        self._associating = trio.Lock()
        self._subjects: dict[str, _Users] = {}
        self._closed = False
        self.trouble: str | None = None
        """Why the last change could not be written; None after one that was."""

    async def close(self) -> None:
        """Nothing more is written; what is being written is waited for."""
        async with self._writing:
            self._closed = True

    async def open(self) -> None:
        """Read what is there. Raises PluginError, BrokerError."""
        await topics.ensure(self.broker)
        await self._highest.read()
        await self.reader.catch_up()
        self.stale.clear()

    async def follow(self) -> None:
        """Read what others append, until cancelled, or until the topic is gone. Raises BrokerError."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_ids)
            try:
                await self.reader.follow()
            except TopicGoneError:
                self.broker.logger.error(
                    "topic %s was deleted, and all schemas with it; it is made anew", topics.SCHEMAS
                )
            nursery.cancel_scope.cancel()
        for context in self.state.contexts:
            await self._highest.keep(context)

    async def _keep_ids(self) -> None:
        """Where others have removed versions, or clients have, the highest ids are kept too."""
        wake = trio.Event()

        def look() -> None:
            if self.state.lost_ids:
                wake.set()

        self.reader.after = look
        look()  # what was lost in what was replayed may have been written, but not kept, before a crash
        while True:
            await wake.wait()
            wake = trio.Event()
            contexts = list(self.state.lost_ids)
            self.state.lost_ids.clear()
            for context in contexts:
                try:
                    await self._highest.keep(context)
                except Refusal as error:
                    self.trouble = str(error)
                    self.broker.logger.error("%s", error)

    # Schemas

    async def register(
        self,
        subject: str,
        registration: Registration,
        *,
        normalize: bool = False,
        force: bool = False,
        propagate_tags: bool = False,
    ) -> Version:
        """The version that it is, or becomes. `propagate_tags`: with the tags that stand in the version before. Raises
        Refusal, Incompatible."""
        async with self._only_one(subject):
            while True:
                revision = self.state.revision
                content, source = await self._read(subject, registration, normalize=normalize)
                config = scopes.config_of(self.state, subject)
                found = self._already(subject, registration, content, config)
                if found is not None:
                    return found
                registering.check_mode(self.state, subject, registration.id)
                importing = scopes.mode_of(self.state, subject) in (scopes.IMPORT, scopes.FORWARD)
                if not importing:
                    if propagate_tags:
                        content, source = await self._with_tags_before(subject, registration, content, source)
                    content = self._with_parts(subject, registration, content, config)
                    found = self._already(subject, registration, content, None)
                    if found is not None:
                        return found
                    if not force:
                        told = await self._messages(
                            subject, content, source, self.state.versions(subject), config
                        )
                        if told:
                            raise Incompatible(subject, told)
                async with self._writing:
                    self._check_open()
                    await self.reader.reach_end()
                    if not self._still(subject, registration, revision):
                        continue  # what it was compared with is not what is there now
                    events, key, _ = registering.events_for(self.state, subject, registration, content)
                    await self._write(events)
                    version = self.state.version(*key)
                    if version is None:
                        raise Refusal(50001, f"{topics.SCHEMAS} has been changed by others meanwhile")
                    return version

    async def look_up(
        self, subject: str, registration: Registration, *, normalize: bool = False, deleted: bool = False
    ) -> Version:
        """The version that has this schema. Raises Refusal 40401, 40403, 42201."""
        names = [subject]
        if context_of(subject) == DEFAULT:
            names += [qualified(each, split(subject).subject) for each in self.state.context_names()[1:]]
        for name in names:
            if name not in self.state.subjects:
                continue
            try:
                content, _ = await self._read(name, registration, normalize=normalize)
            except Refusal as refusal:
                if name == subject or refusal.code == BUSY:
                    raise
                continue
            found = self._registered(name, registration, content, deleted=deleted)
            if found is None and (previous := self.state.latest(name)) is not None:
                parts = registering.taken_over(
                    registration, scopes.config_of(self.state, name), previous, None
                )
                found = registering.registered(self.state, name, content.with_parts(*parts), deleted=deleted)
            if found is not None:
                return found
        if not self.state.has(subject, deleted=deleted):
            if subject not in self.state.subjects:
                await self._read(subject, registration, normalize=normalize)  # what is none is 42201 anywhere
            raise no_subject(subject)
        raise no_schema()

    async def why_not(
        self,
        subject: str,
        registration: Registration,
        version: Version | None,
        *,
        normalize: bool = False,
        alone: bool = False,
    ) -> list[str]:
        """Why a schema is not compatible: with this version, or with all that the level asks for; `alone` with none.
        Raises Refusal 42201."""
        if not registration.text.strip():
            raise invalid_schema("Empty schema")
        content, source = await self._read(subject, registration, normalize=normalize)
        config = scopes.config_of(self.state, subject)
        versions = [version] if version is not None else [] if alone else self.state.versions(subject)
        return await self._messages(subject, content, source, versions, config)

    async def render(self, subject: str, content: Content, how: str) -> str:
        """The text in another form (`format=`). Raises Refusal 42201."""
        found = references.resolve(self.state, subject, content.references)
        return await self.checks.render(content.type, Source(content.text, found), how)

    async def tags(self, subject: str, content: Content) -> dict[TaggedPlace, list[str]]:
        """What is tagged in a schema. Raises Refusal 42201."""
        found = references.resolve(self.state, subject, content.references)
        return await self.checks.tags(content.type, Source(content.text, found))

    async def with_tags(
        self, subject: str, registration: Registration, added: Tags, removed: Tags
    ) -> Registration:
        """With these tags in its text. Raises Refusal 42201."""
        if not added and not removed:
            return registration
        numbered = references.numbered(self.state, subject, registration.references)
        found = references.resolve(self.state, subject, numbered)
        source = Source(registration.text, found)
        return registration._replace(
            text=await self.checks.with_tags(registration.type, source, added, removed, {})
        )

    async def delete_version(self, subject: str, version: int, *, permanent: bool) -> int:
        """Raises Refusal."""
        async with self._decide():
            events, number = deleting.delete_version(self.state, subject, version, permanent=permanent)
            await self._write(events)
        return number

    async def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Raises Refusal."""
        async with self._decide():
            events, numbers = deleting.delete_subject(self.state, subject, permanent=permanent)
            await self._write(events)
        return numbers

    # Config, mode, contexts

    async def set_config(self, name: str | None, changes: Mapping[str, Any]) -> Config:
        """Raises Refusal."""
        async with self._decide():
            deleting.check_writable(self.state, name)
            config = self.state.configs.get(name, Config({})).updated(changes)
            await self._write([Event(ConfigKey(name), config)])
        return config

    async def delete_config(self, name: str | None) -> Config:
        """What it was. Raises Refusal 40401."""
        async with self._decide():
            config = scopes.own_config(self.state, name)
            if config is None:
                raise no_subject(name or "")
            deleting.check_writable(self.state, name)
            await self._write([Event(ConfigKey(name), None)])
        return config

    async def set_mode(self, name: str | None, mode: str | None, *, force: bool) -> None:
        """Raises Refusal 42205, 42206."""
        async with self._decide():
            await self._write(deleting.set_mode(self.state, name, mode, force=force))

    async def delete_mode(self, name: str | None, *, recursive: bool) -> str | None:
        """What it was. Raises Refusal 40401."""
        async with self._decide():
            mode = scopes.own_mode(self.state, name)
            if mode is None and not recursive:
                raise no_subject(name or "")
            await self._write(deleting.delete_mode(self.state, name, recursive=recursive))
        return mode

    async def delete_context(self, prefix: str) -> None:
        """Raises Refusal 42211."""
        async with self._decide():
            await self._write(deleting.delete_context(self.state, prefix))

    # Associations

    async def associate(
        self, context: str, request: associating.AssociationRequest, *, create: bool, dry_run: bool
    ) -> list[tuple[Association, Version | None]]:
        """What has been written, with the schemas that were registered for it: nothing where all was there, or with
        `dry_run`. `context` is the prefix of subjects that name none. Raises Refusal, Incompatible."""
        async with self._associating:
            await self.reader.reach_end()
            pending = await associating.decide(
                self.state, context, request, self._is_registered, create=create
            )
            for wanted, subject, _ in pending:
                if wanted.registration is not None:
                    told = await self.why_not(subject, wanted.registration, None, normalize=wanted.normalize)
                    if told:
                        raise Incompatible(subject, told)
            if dry_run or not pending:
                return []
            versions: list[Version | None] = []
            for wanted, subject, _ in pending:
                given = wanted.registration
                versions.append(
                    None if given is None else await self.register(subject, given, normalize=wanted.normalize)
                )
            events = associating.events_for(request, pending)
            async with self._decide():
                await self._write(events)
            keys = [event.key for event in events if isinstance(event.key, AssociationKey)]
            return [(self.state.associations[key], found) for key, found in zip(keys, versions, strict=True)]

    async def delete_associations(
        self, resource: str, kind: str, parts: Sequence[str], *, cascade: bool, dry_run: bool
    ) -> None:
        """With `cascade` the subjects of STRONG ones are deleted for good too. Raises Refusal."""
        async with self._associating:
            await self.reader.reach_end()
            found = associating.listed(self.state, resource=resource, kind=kind, parts=parts)
            if not found:
                raise associating.not_there(resource)
            for each in found:
                associating.check_deletion(self.state, each, cascade=cascade)
            if dry_run:
                return
            async with self._decide():
                await self._write([Event(each.key, None) for each in found])
            for each in found:
                subject = each.key.subject
                if (
                    cascade
                    and each.value.lifecycle == associating.STRONG
                    and scopes.mode_of(self.state, subject) != scopes.IMPORT
                ):
                    if self.state.has(subject, deleted=False):
                        await self.delete_subject(subject, permanent=False)
                    if self.state.has(subject, deleted=True):
                        await self.delete_subject(subject, permanent=True)

    async def _is_registered(self, subject: str, registration: Registration, normalize: bool) -> bool:
        try:
            await self.look_up(subject, registration, normalize=normalize)
        except Refusal as refusal:
            if refusal.code not in (40401, 40403):
                raise
            return False
        return True

    # How

    async def _read(
        self, subject: str, registration: Registration, *, normalize: bool
    ) -> tuple[Content, Source]:
        """The schema as its format reads it. Raises Refusal 42201."""
        if not registration.text.strip():
            previous = self.state.latest(subject)
            if previous is None:
                raise invalid_schema("Empty schema")
            content = previous.content
            registration = registration._replace(
                type=content.type, text=content.text, references=content.references
            )
        registration = registration._replace(
            references=references.numbered(self.state, subject, registration.references)
        )
        found = references.resolve(self.state, subject, registration.references, deleted=False)
        reading = await self.checks.read(registration.type, registration.text, found)
        normalize = normalize or scopes.config_of(self.state, subject)["normalize"] is True
        text = reading.normalized if normalize else reading.canonical
        return registration.content(text), Source(text, found)

    async def _with_tags_before(
        self, subject: str, registration: Registration, content: Content, source: Source
    ) -> tuple[Content, Source]:
        """With the tags of the version before, where what they stand at is still there. Raises Refusal 42201."""
        previous = self.state.latest(subject)
        if previous is None or previous.content.type != content.type:
            return content, source
        tags = await self.tags(subject, previous.content)
        if not tags:
            return content, source
        text = await self.checks.with_tags(content.type, source, {}, {}, tags)
        reading = await self.checks.read(content.type, text, source.references)
        return registration.content(reading.canonical), source._replace(text=reading.canonical)

    def _registered(
        self, subject: str, registration: Registration, content: Content, *, deleted: bool = False
    ) -> Version | None:
        """The version that this is, as we store it or as Karapace has."""
        found = registering.registered(self.state, subject, content, deleted=deleted)
        if found is None and subject in self.state.subjects:
            other = karapace.as_stored(registration.type, registration.text, content)
            if other is not None:
                found = registering.registered(self.state, subject, other, deleted=deleted)
        return found

    def _already(
        self, subject: str, registration: Registration, content: Content, config: Config | None
    ) -> Version | None:
        if config is not None and config.adds:
            return None
        found = self._registered(subject, registration, content)
        if found is None or (registration.id >= 0 and registration.id != found.id):
            return None
        if registration.version in (0, found.version):
            return found
        if registration.version == LATEST:
            return found if found is self.state.latest(subject) else None
        same = self.state.version(subject, registration.version)
        return same if same is not None and not same.deleted and same.id == found.id else None

    def _with_parts(
        self, subject: str, registration: Registration, content: Content, config: Config
    ) -> Content:
        previous, number = self.state.latest(subject), registering.next_version(self.state, subject)
        return content.with_parts(*registering.taken_over(registration, config, previous, number))

    async def _messages(
        self,
        subject: str,
        content: Content,
        source: Source,
        versions: Sequence[Version],
        config: Config,
    ) -> list[str]:
        asked = Asked(config.level, config[POLICY] == LENIENT, config[VALIDATE_FIELDS] is True)
        told: list[str] = []
        if asked.validate_fields:
            fields = await self.checks.fields(content.type, source)
            told += reserved_messages(fields, content, versions[-1].content if versions else None)
        group = config["compatibilityGroup"]
        if group:
            value = _property(content, group)
            versions = [each for each in versions if _property(each.content, group) == value]
        if config.level != "NONE":
            # Of a request, reading and comparing have the time of one together: an answer comes within two seconds.
            limit = of_request()
            new, earlier = self._compared(subject, content, source, versions)
            told += await comparing.messages(self.checks, new, earlier, asked, limit)
        return [*told, comparing.asked_in_words(asked)] if told else []

    def _compared(
        self, subject: str, content: Content, source: Source, versions: Sequence[Version]
    ) -> tuple[Earlier, list[Earlier]]:
        """The new schema, and those that it is compared with. Raises Refusal 42201."""
        state, known = self.state, dict[SchemaKey, bytes]()
        earlier = [
            Earlier(
                each.version,
                each.content.type,
                Source(each.content.text, references.resolve(state, each.subject, each.content.references)),
                references.identity(state, each.subject, each.content, known),
            )
            for each in versions
        ]
        identity = references.identity(state, subject, content, known)
        return Earlier(0, content.type, source, identity), earlier

    def _still(self, subject: str, registration: Registration, revision: int) -> bool:
        """Whether what was decided on is as it was. Other subjects may have changed, but for those it names."""
        return self.state.revision == revision or self._unchanged(subject, registration, revision)

    def _unchanged(self, subject: str, registration: Registration, revision: int) -> bool:
        touched = self.reader.touched_since(revision)
        if touched is None:
            return False
        own = {subject, *(each.subject for each in registration.references)}
        return not any(name is None or name in own or split(name).subject == "" for name in touched)

    def _check_open(self) -> None:
        if self._closed:
            raise Refusal(50001, "The registry was restarted meanwhile; try again.")

    async def _write(self, events: Sequence[Event]) -> None:
        try:
            for event in events:
                if isinstance(event.key, SchemaKey) and event.value is None:
                    await self._highest.keep(context_of(event.key.subject))
            await self._writer.write(events)
        except Refusal as refusal:
            if refusal.code == STORE_FAILED:
                self.trouble = str(refusal)
            raise
        self.trouble = None

    @asynccontextmanager
    async def _decide(self) -> AsyncGenerator[None, None]:
        """Alone, on what everyone has written until now."""
        async with self._writing:
            self._check_open()
            await self.reader.reach_end()
            yield

    @asynccontextmanager
    async def _only_one(self, subject: str) -> AsyncGenerator[None, None]:
        """One registration of a subject at a time: two that come at once get one id. Raises Refusal 503."""
        users = self._subjects.setdefault(subject, _Users())
        users.count += 1
        try:
            with of_request().waiting():
                await users.lock.acquire()
            try:
                yield
            finally:
                users.lock.release()
        finally:
            users.count -= 1
            if not users.count:
                del self._subjects[subject]


class _Users:
    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.count = 0


def _property(content: Content, name: str) -> str | None:
    value: str | None = (content.metadata or {}).get("properties", {}).get(name)
    return value
