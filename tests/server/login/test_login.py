"""Which step of a log-in may come when: every state with every step."""

from __future__ import annotations

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.server.login.login import Login, LoginState
from leafcuttr.server.login.mechanisms import LoginRefused, LoginStep
from support.logs import HandClock

E, S = ErrorCode, LoginState


class Steps:
    """A mechanism: `more` goes on, `no` is refused, all else is the name of the user."""

    checks_stored = True

    async def step(self, data: bytes) -> LoginStep:
        if data == b"no":
            raise LoginRefused("Authentication failed: no")
        return LoginStep(b"go on") if data == b"more" else LoginStep(b"welcome", data.decode())


class Given:
    def __init__(self, lifetime_ms: int = 0) -> None:
        self.clock = HandClock()
        self.login = Login({"A": Steps, "B": Steps}, self.clock, lambda: lifetime_ms)
        self.failures = 0
        self.login.on_failure = self.failed

    def failed(self) -> None:
        self.failures += 1

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


async def test_whose_user_is_stored() -> None:
    given = Given()
    assert not given.login.checks_stored
    assert (await given.to(S.DONE)).checks_stored
