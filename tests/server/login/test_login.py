"""Which step of a log-in may come when: every state with every step."""

from __future__ import annotations

from functools import partial

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.server.login.login import Login, LoginState
from leafcuttr.server.login.mechanisms import LoginRefused, LoginStep
from support.logs import HandClock

E, S = ErrorCode, LoginState


class Steps:
    """A mechanism: `more` goes on, `no` is refused, all else is the name of the user."""

    def __init__(self, given: Given) -> None:
        self.given = given

    async def step(self, data: bytes) -> LoginStep:
        if data == b"no":
            raise LoginRefused("Authentication failed: no", "no, because of A")
        if data == b"more":
            return LoginStep(b"go on")
        given = self.given
        return LoginStep(b"welcome", data.decode(), given.expires_ms, lambda: given.holds, data == b"token")


class Given:
    """`lifetime_ms` is that of the mechanism A."""

    def __init__(self, lifetime_ms: int = 0) -> None:
        self.clock = HandClock()
        self.expires_ms: int | None = None
        self.holds = True
        made = partial(Steps, self)
        self.login = Login({"A": made, "B": made}, self.clock, {"A": lifetime_ms, "B": 7}.__getitem__)
        self.failures = self.logins = 0
        self.login.on_failure = self.failed
        self.login.on_login = self.logged_in

    def failed(self) -> None:
        self.failures += 1

    def logged_in(self) -> None:
        self.logins += 1

    async def to(self, state: LoginState) -> Login:
        login = self.login
        if state is not S.NEW:
            assert login.handshake("A") is E.NONE
        if state is S.EXCHANGING:
            await login.authenticate(b"more")
        if state in (S.DONE, S.AGAIN):
            await login.authenticate(b"alice")
        if state is S.AGAIN:
            assert login.handshake("A") is E.NONE
        if state is S.FAILED:
            await login.authenticate(b"no")
        assert login.state is state
        return login


STATES = list(LoginState)


@pytest.mark.parametrize("state", STATES)
async def test_a_handshake(state: LoginState) -> None:
    login = await Given().to(state)
    follows = {S.NEW: S.HANDSHAKEN, S.DONE: S.AGAIN}
    code = login.handshake("A")
    assert (code, login.state) == (
        (E.NONE, follows[state]) if state in follows else (E.ILLEGAL_SASL_STATE, S.FAILED)
    )


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("said", [b"more", b"alice", b"no"])
async def test_a_message_of_the_mechanism(state: LoginState, said: bytes) -> None:
    login = await Given().to(state)
    allowed = {S.HANDSHAKEN: S.EXCHANGING, S.EXCHANGING: S.EXCHANGING, S.AGAIN: S.AGAIN}
    outcome = await login.authenticate(said)
    if state not in allowed:
        assert (outcome.code, login.state) == (E.ILLEGAL_SASL_STATE, S.FAILED)
    elif said == b"no":
        assert (outcome.code, outcome.message) == (
            E.SASL_AUTHENTICATION_FAILED,
            "Authentication failed: no",
        )
        assert login.state is S.FAILED
    else:
        assert outcome.code is E.NONE
        assert login.state is (S.DONE if said == b"alice" else allowed[state])
        assert outcome.data == (b"welcome" if said == b"alice" else b"go on")


async def test_a_mechanism_that_is_not_enabled() -> None:
    login = Given().login
    assert login.offered == ["A", "B"]
    assert login.handshake("C") is E.UNSUPPORTED_SASL_MECHANISM
    assert login.state is S.FAILED
    assert login.refusal == "the mechanism 'C' is not enabled"


@pytest.mark.parametrize(("mechanism", "user"), [("B", "alice"), ("A", "bob")])
async def test_who_logs_in_again_is_the_same(mechanism: str, user: str) -> None:
    """KIP-368"""
    given = Given()
    login = await given.to(S.DONE)
    if login.handshake(mechanism) is E.NONE:
        assert (await login.authenticate(user.encode())).code is E.SASL_AUTHENTICATION_FAILED
    assert login.state is S.FAILED
    assert given.failures == 1
    assert login.user == "alice"


async def test_a_first_log_in_that_fails_tells_nobody() -> None:
    """The connection is not served yet."""
    given = Given()
    await given.to(S.FAILED)
    assert given.failures == 0


async def test_the_end_of_a_session() -> None:
    given = Given(lifetime_ms=1000)
    login = await given.to(S.HANDSHAKEN)
    assert (await login.authenticate(b"alice")).lifetime_ms == 1000
    given.clock.ms += 999
    assert not login.is_over()
    given.clock.ms += 1
    assert login.is_over()
    login.handshake("A")
    await login.authenticate(b"alice")
    assert not login.is_over()
    assert not (await Given().to(S.DONE)).is_over()


@pytest.mark.parametrize(
    ("most_ms", "token_ms", "wanted"),
    [
        (0, None, 0),
        (-5, None, 0),
        (1000, None, 1000),
        (0, 300, 300),
        (1000, 300, 300),
        (200, 300, 200),
        (0, -9, 0),
    ],
)
async def test_how_long_a_session_lasts(most_ms: int, token_ms: int | None, wanted: int) -> None:
    """The shorter one of what the settings and the token allow, as Kafka computes it."""
    given = Given(most_ms)
    given.expires_ms = None if token_ms is None else given.clock.ms + token_ms
    login = await given.to(S.HANDSHAKEN)
    assert (await login.authenticate(b"alice")).lifetime_ms == wanted
    is_bound = most_ms > 0 or token_ms is not None
    assert login.expires == (given.clock.monotonic() + wanted / 1000 if is_bound else None)


async def test_each_mechanism_has_a_lifetime() -> None:
    login = Given(lifetime_ms=1000).login
    login.handshake("B")
    assert (await login.authenticate(b"alice")).lifetime_ms == 7


async def test_what_has_been_withdrawn_before_the_log_in_was_over() -> None:
    given = Given()
    login = await given.to(S.EXCHANGING)
    given.holds = False
    assert (await login.authenticate(b"alice")).code is E.SASL_AUTHENTICATION_FAILED
    assert (login.state, login.user) == (S.FAILED, None)


async def test_what_is_withdrawn_later() -> None:
    given = Given()
    assert given.login.still_holds(), "there is nothing yet that could be"
    login = await given.to(S.DONE)
    assert login.still_holds()
    given.holds = False
    assert not login.still_holds()


async def test_who_has_shown_a_token() -> None:
    login = await Given().to(S.DONE)
    assert not login.by_token
    login = await Given().to(S.HANDSHAKEN)
    await login.authenticate(b"token")
    assert login.by_token


async def test_a_later_log_in_is_told_and_a_first_one_is_not() -> None:
    given = Given()
    login = await given.to(S.DONE)
    assert given.logins == 0
    login.handshake("A")
    await login.authenticate(b"more")
    assert given.logins == 0
    await login.authenticate(b"alice")
    assert (given.logins, given.failures) == (1, 0)


async def test_the_log_says_more_than_the_client_hears() -> None:
    login = await Given().to(S.HANDSHAKEN)
    assert (await login.authenticate(b"no")).message == "Authentication failed: no"
    assert login.refusal == "no, because of A"


async def test_one_that_is_refused_from_outside() -> None:
    given = Given()
    login = await given.to(S.AGAIN)
    outcome = login.refuse("too long")
    assert (outcome.code, outcome.message) == (E.SASL_AUTHENTICATION_FAILED, "too long")
    assert (login.state, given.failures) == (S.FAILED, 1)
