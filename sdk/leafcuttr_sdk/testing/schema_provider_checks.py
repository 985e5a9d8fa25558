"""Conformance of schema providers: `leafcuttr_sdk.schemas` says what they promise.

The check registers schemas in a subject of its own, and leaves them there.
"""

import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar, cast

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.schemas import (
    RegisteredSchema,
    SchemaError,
    SchemaNotFoundError,
    SchemaProvider,
    SchemaReference,
    SchemaVersion,
)
from leafcuttr_sdk.testing.report import Notes, Report, literally, told

T = TypeVar("T")

PROMISES: Final = {
    "ready": "it can answer, or says in one line what it waits for",
    "registers": "a schema that is registered is found by its id, guid, subject and text, and has one id however often",
    "remembers": "what it has given is in memory, for any thread",
    "not found": "what is not there is SchemaNotFoundError, and None from memory",
    "refuses": "a text that is no schema is SchemaError",
}
_PATIENCE_S: Final = 20.0
_AVRO: Final = (
    '{"type":"record","name":"Sample","fields":[{"name":"id","type":"long"}]}',
    '{"type":"record","name":"Sample","fields":[{"name":"id","type":"long"},'
    '{"name":"note","type":"string","default":""}]}',
)
_NEVER_GIVEN: Final = 2**31 - 1
_RAISED: Final = object()


async def check_schema_provider(
    provider: SchemaProvider, *, format: str = "AVRO", texts: tuple[str, str] = _AVRO
) -> None:
    """Check a provider on its own loop. `texts` are two schemas of the format, of which the second can be registered
    after the first. Raises ContractError with all that is wrong."""
    (await schema_provider_report(provider, format, texts)).raise_problems()


async def schema_provider_report(
    provider: SchemaProvider, format: str = "AVRO", texts: tuple[str, str] = _AVRO
) -> Report:
    """The report that `check_schema_provider` would raise."""
    import trio

    notes = Notes("schema provider", type(provider).__name__, PROMISES)
    with trio.move_on_after(_PATIENCE_S):
        while isinstance(provider.waits_for, str):  # noqa: ASYNC110 (the contract has no event for it)
            await trio.sleep(0.02)
    waits: Any = provider.waits_for
    if waits is not None:
        said = waits if isinstance(waits, str) else kind_of(waits)
        notes.add("ready", literally(f"after {_PATIENCE_S:.0f} s it waits for {said}"))
        return notes.report(["ready"])
    trial = _Trial(provider, notes, f"check-{secrets.token_hex(4)}")
    await trial.registers(format, texts)
    await trial.not_found(format, texts[0])
    await trial.refuses(format)
    return notes.report()


class _Trial:
    def __init__(self, provider: SchemaProvider, notes: Notes, subject: str) -> None:
        self._provider = provider
        self._notes = notes
        self._subject = subject

    async def registers(self, format: str, texts: tuple[str, str]) -> None:
        import trio

        provider, subject = self._provider, self._subject
        at_once: list[RegisteredSchema | None] = []

        async def register() -> None:
            at_once.append(await self._registered(format, texts[0]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(register)
            nursery.start_soon(register)
        at_once.append(await self._registered(format, texts[0]))
        second = await self._registered(format, texts[1])
        if second is None or any(each is None for each in at_once):
            return
        first = cast(RegisteredSchema, at_once[0])
        ids = {cast(RegisteredSchema, each).id for each in at_once}
        if len(ids) != 1:
            self._notes.add("registers", f"one schema got the ids {sorted(ids)}")
        if second.id == first.id:
            self._notes.add("registers", f"two schemas got the id {first.id}")
        for version, text, registered in ((1, texts[0], first), (2, texts[1], second)):
            await self._is_there(version, format, text, registered)
            await trio.to_thread.run_sync(self._is_remembered, registered)
        latest = await self._expected("registers", lambda: provider.by_version(subject))
        if latest is not _RAISED and self._is_a("registers", latest, SchemaVersion) and latest.version != 2:
            self._notes.add("registers", f"the latest version of two is {latest.version}")

    async def _registered(self, format: str, text: str) -> RegisteredSchema | None:
        found = await self._expected(
            "registers", lambda: self._provider.register(self._subject, format, text)
        )
        if found is _RAISED or not self._is_a("registers", found, RegisteredSchema):
            return None
        return cast(RegisteredSchema, found)

    def _is_a(self, check: str, found: object, kind: type) -> bool:
        if isinstance(found, kind):
            return True
        self._notes.add(check, f"it gave {kind_of(found)}, not {kind.__name__}")
        return False

    async def _is_there(self, version: int, format: str, text: str, registered: RegisteredSchema) -> None:
        provider, subject = self._provider, self._subject
        wanted = SchemaVersion(subject, version, registered)
        for what, call in (
            ("by_version", lambda: provider.by_version(subject, version)),
            ("find", lambda: provider.find(subject, format, text)),
        ):
            found = await self._expected("registers", call)
            if found is not _RAISED and found != wanted:
                self._notes.add("registers", literally(f"{what} gives {found!r}, not {wanted!r}"))
        for key in (registered.id, registered.guid):
            by_id = await self._expected("registers", partial(provider.by_id, key, subject))
            if by_id is not _RAISED and by_id != registered:
                self._notes.add("registers", literally(f"by_id({key!r}) gives {by_id!r}, not {registered!r}"))

    def _is_remembered(self, registered: RegisteredSchema) -> None:
        """In a thread that is not the loop's."""
        provider, subject = self._provider, self._subject
        for key in (registered.id, registered.guid):
            got = self._called("remembers", partial(provider.get, key, subject))
            if got != registered:
                self._notes.add("remembers", literally(f"get({key!r}) gives {got!r}, not {registered!r}"))
            parsed: Any = self._called("remembers", partial(provider.parsed, key, subject))
            if not isinstance(getattr(parsed, "canonical", None), str):
                self._notes.add("remembers", f"parsed({key!r}) gives {kind_of(parsed)}, no schema")
            if self._called("remembers", partial(provider.belongs, key, subject)) is not True:
                self._notes.add("remembers", f"belongs({key!r}) is not True for the subject that has it")
        if (
            self._called("remembers", lambda: provider.belongs(registered.id, f"{subject}-other"))
            is not False
        ):
            self._notes.add("remembers", "belongs is not False for a subject that is not there")

    async def not_found(self, format: str, text: str) -> None:
        provider, missing = self._provider, f"{self._subject}-missing"
        for what, call in (
            ("by_id", lambda: provider.by_id(_NEVER_GIVEN)),
            ("by_version of no subject", lambda: provider.by_version(missing)),
            ("by_version of no version", lambda: provider.by_version(self._subject, 1000)),
            ("find", lambda: provider.find(missing, format, text)),
            (
                "register with a reference to nothing",
                lambda: provider.register(
                    self._subject, format, text, [SchemaReference("nothing", missing, 1)]
                ),
            ),
        ):
            await self._raises("not found", what, SchemaNotFoundError, call)
        asks: tuple[tuple[str, Callable[[int], object]], ...] = (
            ("get", provider.get),
            ("parsed", provider.parsed),
        )
        for what, ask in asks:
            got = self._called("not found", partial(ask, _NEVER_GIVEN))
            if got is not None:
                self._notes.add(
                    "not found", f"{what} of an id that was not given is {kind_of(got)}, not None"
                )

    async def refuses(self, format: str) -> None:
        for what, text in (("nothing", ""), ("half a text", "{"), ("a NUL", "\0")):
            await self._raises(
                "refuses",
                what,
                SchemaError,
                partial(self._provider.register, self._subject, format, text),
            )

    async def _raises(
        self, check: str, what: str, error: type[Exception], call: Callable[[], Awaitable[object]]
    ) -> None:
        try:
            found = await call()
        except error as raised:
            if len(str(raised).splitlines()) != 1:
                self._notes.add(check, literally(f"the {error.__name__} of {what} is not one line: {raised}"))
        except Exception as raised:
            self._notes.add(check, literally(f"{what} raised {told(raised)}, not {error.__name__}"))
        else:
            self._notes.add(check, f"{what} gave {kind_of(found)}; it raises {error.__name__}")

    async def _expected(self, check: str, call: Callable[[], Awaitable[object]]) -> Any:
        """What it gives, also if that is None; `_RAISED` where it raised, which is noted."""
        try:
            return await call()
        except Exception as error:
            self._notes.add(check, literally(f"it raised {told(error)}"))
            return _RAISED

    def _called(self, check: str, call: Callable[[], T]) -> T | None:
        try:
            return call()
        except Exception as error:
            self._notes.add(check, literally(f"it raised {told(error)}"))
            return None
