"""Conformance of authenticators: `leafcuttr_sdk.authentication` says what they promise."""

import inspect
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias, cast

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.authentication import (
    AUTHENTICATION_S,
    MOST_STEPS,
    WAYS,
    Authenticated,
    Authenticator,
    AuthenticatorSpec,
    BearerToken,
    Challenge,
    Credentials,
    ExchangeAuthenticator,
    NameAndPassword,
    PeerCertificate,
    Principal,
    Refused,
)
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.testing.report import Notes, Report, literally, told

PROMISES: Final = {
    "made": "it can be made, and its spec names ways that there are, and mechanisms by names that SASL has",
    "called": "authenticate is an async method that takes credentials",
    "answers": "it returns Authenticated, Refused or None, and raises nothing, whatever clients send",
    "refuses": "it does not authenticate credentials that are guessed",
    "accepts": "it authenticates the credentials that it is given as right, and calls may overlap",
    "steps": "each exchange of its mechanisms ends, whatever the client sends, and by itself; several may be under way",
    "does not block": "it leaves the loop to others: long work is done in a thread",
}
_PATIENCE_S: Final = 0.1
_AT_ONCE: Final = 8
_MECHANISM: Final = re.compile(r"[A-Z0-9_-]{1,20}")
"""RFC 4422, section 3.1."""


Answer: TypeAlias = Callable[[bytes | None], bytes]
"""A client of a mechanism: what it sends for a challenge. It is first called with None, and then answers b"" where the
server speaks first."""


def check_authenticator(
    spec: AuthenticatorSpec,
    *,
    right: Credentials | None = None,
    clients: Mapping[str, Callable[[], Answer]] | None = None,
) -> None:
    """Check an authenticator on a loop of trio. `right` are credentials that it has to authenticate, `clients` make
    clients of its mechanisms that it has to, if there are some. Raises ContractError with all that is wrong."""
    import trio

    trio.run(authenticator_report, spec, right, clients).raise_problems()


async def authenticator_report(
    spec: AuthenticatorSpec,
    right: Credentials | None = None,
    clients: Mapping[str, Callable[[], Answer]] | None = None,
) -> Report:
    """The report that `check_authenticator` would raise."""
    notes = Notes("authenticator", spec.name, PROMISES)
    for way in spec.ways:
        if way not in WAYS[1:4]:
            notes.add("made", f"its spec names {way!r} among its ways: those are {', '.join(WAYS[1:4])}")
    for mechanism in spec.mechanisms:
        if not _MECHANISM.fullmatch(mechanism):
            wrong = (
                f"its spec names {mechanism!r:.60} among its mechanisms: up to 20 of A to Z, 0 to 9, - and _"
            )
            notes.add("made", literally(wrong))
    if not spec.ways and not spec.mechanisms:
        notes.add("made", "its spec names neither ways nor mechanisms: no service can use it")
    try:
        authenticator = spec.make()
    except PluginError as error:
        # Without its settings it may well be right to: only who gives it right credentials means it to work.
        if right is not None or clients:
            notes.add("made", literally(f"it refuses to be made: {error}"))
        return notes.report(["made"])
    except Exception as error:
        notes.add("made", literally(f"making it raised {told(error)}: raise PluginError with one line"))
        return notes.report(["made"])
    method: object = getattr(authenticator, "authenticate", None)
    if not callable(method) or not inspect.iscoroutinefunction(method):
        notes.add("called", f"{type(authenticator).__name__} has no method `async def authenticate`")
        return notes.report(["made", "called"])
    trial = _Trial(authenticator, notes)
    if spec.mechanisms:
        begin: object = getattr(authenticator, "begin", None)
        if not callable(begin) or inspect.iscoroutinefunction(begin):
            notes.add("called", "its spec names mechanisms, and it has no method begin, which is not async")
        else:
            await _Steps(cast("ExchangeAuthenticator", authenticator), notes).try_all(
                spec.mechanisms, clients or {}
            )
    for way in spec.ways:
        for credentials in _SAMPLES.get(way, list)():
            await trial.refuses(credentials)
    if right is not None:
        await trial.accepts(right)
    return notes.report()


class _Trial:
    def __init__(self, authenticator: Authenticator, notes: Notes) -> None:
        self._authenticator = authenticator
        self._notes = notes

    async def refuses(self, credentials: Credentials) -> None:
        outcome = await self._outcome(credentials)
        if isinstance(outcome, Authenticated) and not isinstance(credentials, PeerCertificate):
            self._notes.add(
                "refuses", literally(f"it authenticates {_shown(credentials)} as {outcome.principal}")
            )

    async def accepts(self, credentials: Credentials) -> None:
        import trio

        outcome = await self._outcome(credentials)
        if not isinstance(outcome, Authenticated):
            self._notes.add("accepts", literally(f"it answers {outcome!r} to {_shown(credentials)}"))
            return
        outcomes: list[object] = []

        async def again() -> None:
            outcomes.append(_without_callables(await self._outcome(credentials)))

        async with trio.open_nursery() as nursery:
            for _ in range(_AT_ONCE):
                nursery.start_soon(again)
        if outcomes != [_without_callables(outcome)] * _AT_ONCE and outcome.expires_ms is None:
            self._notes.add("accepts", f"of {_AT_ONCE} calls at once not all have the same outcome")

    async def _outcome(self, credentials: Credentials) -> object:
        call = partial(self._authenticator.authenticate, credentials)
        outcome = await _called(call, self._notes, "answers", f"for {_shown(credentials)}")
        if wrong := _wrong(outcome):
            self._notes.add("answers", literally(wrong))
        return outcome


class _Steps:
    def __init__(self, authenticator: ExchangeAuthenticator, notes: Notes) -> None:
        self._authenticator = authenticator
        self._notes = notes

    async def try_all(self, mechanisms: Iterable[str], clients: Mapping[str, Callable[[], Answer]]) -> None:
        for mechanism in mechanisms:
            for garbage in _GARBAGE:
                for first in {garbage, b""}:
                    await self._ends(mechanism, _says(first, garbage), "garbage")
            await self._ends(mechanism, lambda challenge: challenge or b"", "what it was sent itself")
            if mechanism in clients:
                await self._accepts(mechanism, clients[mechanism])

    async def _accepts(self, mechanism: str, make: Callable[[], Answer]) -> None:
        import trio

        async def once() -> None:
            outcome = await self._outcome(mechanism, make())
            if not isinstance(outcome, Authenticated):
                told = f"it answers {outcome!r} to the right client of {mechanism}, {_AT_ONCE} at once"
                self._notes.add("accepts", literally(told))

        async with trio.open_nursery() as nursery:
            for _ in range(_AT_ONCE):
                nursery.start_soon(once)

    async def _ends(self, mechanism: str, client: Answer, what: str) -> None:
        outcome = await self._outcome(mechanism, client)
        if isinstance(outcome, Authenticated):
            told = f"it authenticates a client that sends {what} by {mechanism}, as {outcome.principal}"
            self._notes.add("refuses", literally(told))

    async def _outcome(self, mechanism: str, client: Answer) -> object:
        try:
            exchange = self._authenticator.begin(mechanism)
        except Exception as error:
            self._notes.add("steps", literally(f"begin({mechanism!r}) raised {told(error)}"))
            return None
        if not inspect.iscoroutinefunction(getattr(exchange, "step", None)):
            what = f"{kind_of(exchange)} without `async def step`"
            self._notes.add("steps", literally(f"begin({mechanism!r}) returned {what}"))
            return None
        data: bytes | None = None
        for _ in range(MOST_STEPS):
            sent = client(data)
            outcome = await _called(
                partial(exchange.step, sent),
                self._notes,
                "steps",
                f"for a step of {mechanism} with {_bytes(sent)}",
            )
            if not isinstance(outcome, Challenge):
                if wrong := _wrong_step(outcome):
                    self._notes.add("steps", literally(wrong))
                return outcome
            data = outcome.data
            if not isinstance(cast("object", data), bytes):
                self._notes.add("steps", "the data of a Challenge are no bytes")
                return None
        self._notes.add("steps", f"an exchange of {mechanism} has not ended after {MOST_STEPS} steps")
        return None


def _without_callables(outcome: object) -> object:
    """One that was made for each call is another one each time."""
    return outcome._replace(still_holds=None) if isinstance(outcome, Authenticated) else outcome


def _says(first: bytes, then: bytes) -> Answer:
    return lambda challenge: first if challenge is None else then


async def _called(call: Callable[[], Awaitable[object]], notes: Notes, promise: str, what: str) -> object:
    import trio

    outcome: object = None
    worked = time.thread_time()
    with trio.move_on_after(AUTHENTICATION_S) as scope:
        try:
            outcome = await call()
        except Exception as error:
            notes.add(promise, literally(f"it raised {told(error)} {what}"))
            return Refused("it raised")
    if scope.cancelled_caught:
        notes.add(promise, literally(f"it took longer than {AUTHENTICATION_S:g} s {what}"))
        return Refused("it took too long")
    if time.thread_time() - worked > _PATIENCE_S:
        wrong = "it works for long on the loop: use trio.to_thread.run_sync for what takes time"
        notes.add("does not block", wrong)
    return outcome


def _wrong_step(outcome: object) -> str | None:
    if outcome is None:
        return "a step returned None: return Challenge, Authenticated or Refused"
    if isinstance(outcome, Authenticated) and not isinstance(cast("object", outcome.data), bytes):
        return "the data of Authenticated are no bytes"
    return _wrong(outcome)


def _bytes(data: bytes) -> str:
    return repr(data) if len(data) < 40 else f"{len(data)} bytes"


def _wrong(outcome: object) -> str | None:
    if outcome is None or isinstance(outcome, Refused):
        return None
    if not isinstance(outcome, Authenticated):
        return f"it returned {kind_of(outcome)}: return Authenticated, Refused or None"
    principal = cast("object", outcome.principal)
    if not isinstance(principal, Principal):
        return f"its principal is {kind_of(principal)}: return Authenticated(Principal('User', name))"
    return None


def _names() -> list[Credentials]:
    guessed = secrets.token_hex(8)
    odd = ["a", guessed, "\0", "a\nb", "ü" * 300, "\udcff", "x" * 65_536, "../../etc/passwd", "' OR 1=1 --"]
    return [
        *(NameAndPassword(name, guessed) for name in odd),
        NameAndPassword("", ""),
        NameAndPassword("a", ""),
    ]


def _tokens() -> list[Credentials]:
    guessed = secrets.token_urlsafe(32)
    odd = [guessed, "a", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "ü", "\udcff", "\0", "x" * 65_536]
    return [BearerToken(token) for token in odd]


def _certificates() -> list[Credentials]:
    return [PeerCertificate(der, subject) for der in (b"", b"0\x82") for subject in ("", "CN=a", "CN=\\,")]


_GARBAGE: Final = (
    b"",
    b"\0",
    b"\0a\0",
    b"a",
    b"\xff" * 64,
    b"n,,n=a,r=b",
    b"c=biws,r=,p=",
    b"=" * 65_536,
    secrets.token_bytes(32),
)

_SAMPLES: Final[dict[str, Callable[[], list[Credentials]]]] = {
    "basic": _names,
    "bearer": _tokens,
    "mtls": _certificates,
}


def _shown(credentials: Credentials) -> str:
    text = f"{credentials!r}"
    return text if len(text) < 80 else f"{text[:60]}..."
