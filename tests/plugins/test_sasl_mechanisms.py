"""`lc.sasl.mechanisms`: clients of Kafka log in by a mechanism of a plugin, and the starts that have none."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode, StartError
from leafcuttr.wire.messages.describe_acls import DescribeAclsRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from leafcuttr_sdk import Authenticated, AuthenticatorSpec, Challenge, Plugin, PluginError, Principal, Refused
from leafcuttr_sdk.testing import RunningBroker, running_broker
from support.waiting import until
from support.wire_client import WireClient

FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
GIVEN: dict[str, Any] = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_alice="secret";',
    "connection.failed.authentication.delay.ms": "0",
    "lc.sasl.mechanisms": "CRAM",
}


class Knock:
    """Its client names itself, and answers the challenge with its HMAC. A test makes the outcome of the name."""

    def __init__(self, outcome: Callable[[str], Any]) -> None:
        self._outcome = outcome

    async def authenticate(self, credentials: Any) -> None:
        return None

    def begin(self, mechanism: str) -> Any:
        return Steps(mechanism, self._outcome)


class Steps:
    def __init__(self, mechanism: str, outcome: Callable[[str], Any]) -> None:
        self._mechanism = mechanism
        self._outcome = outcome
        self._challenged = False

    async def step(self, data: bytes) -> Any:
        if not self._challenged:
            self._challenged = True
            return Challenge(self._mechanism.encode())
        name, _, proof = data.partition(b" ")
        if proof != hmac.digest(b"secret", self._mechanism.encode(), "sha256").hex().encode():
            return Refused(f"the proof of {name.decode()} is wrong")
        return self._outcome(name.decode())


def somebody(name: str) -> Authenticated:
    return Authenticated(Principal("Robot", name), data=b"welcome")


def spec(
    outcome: Callable[[str], Any] = somebody,
    name: str = "knock",
    mechanisms: tuple[str, ...] = ("CRAM", "CRAM-PLUS"),
    make: Callable[[], Any] | None = None,
) -> AuthenticatorSpec:
    return AuthenticatorSpec(
        name, "for a test", make or (lambda: Knock(outcome)), ("bearer",), mechanisms=mechanisms
    )


def plugin(*specs: AuthenticatorSpec, name: str = "acme") -> ModuleType:
    module = ModuleType(name)
    module.PLUGIN = Plugin(name, 1, "authenticates")  # type: ignore[attr-defined]
    module.leafcuttr_register_authenticators = lambda broker: specs  # type: ignore[attr-defined]
    return module


@contextmanager
def client(broker: RunningBroker, listener: str = "SASL_PLAINTEXT") -> Iterator[WireClient]:
    with WireClient(broker.listeners[listener]) as found:
        found.socket.settimeout(60)
        yield found


def log_in(asked: WireClient, name: str = "r2", *, mechanism: str = "CRAM", secret: bytes = b"secret") -> Any:
    """The last answer."""
    assert asked.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
    challenge = asked.ask(SaslAuthenticateRequest(auth_bytes=b""), 2)
    assert challenge.error_code == 0
    proof = hmac.digest(secret, bytes(challenge.auth_bytes), "sha256").hex()
    return asked.ask(SaslAuthenticateRequest(auth_bytes=f"{name} {proof}".encode()), 2)


def closed(asked: WireClient) -> bool:
    try:
        return asked.socket.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.setting("lc.sasl.mechanisms")
def test_a_listener_offers_it_beside_those_of_kafka(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running_broker(tmp_path, GIVEN, [plugin(spec())]) as broker:
        with client(broker) as asked:
            refused = asked.ask(SaslHandshakeRequest(mechanism="CRAM-PLUS"), 1)
            assert refused.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
            assert list(refused.mechanisms) == ["PLAIN", "CRAM"]
        with client(broker) as asked:
            last = log_in(asked)
            assert (last.error_code, bytes(last.auth_bytes), last.session_lifetime_ms) == (0, b"welcome", 0)
            assert asked.ask(MetadataRequest(topics=[]), 12).brokers
        with client(broker) as asked:
            asked.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            last = asked.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2)
            assert last.error_code == 0
        with client(broker) as asked:
            last = log_in(asked, secret=b"guessed")
            assert last.error_code == FAILED
            assert last.error_message == "Authentication failed with SASL mechanism CRAM"
            assert closed(asked)
    assert any(
        line.endswith("Authentication failed with SASL mechanism CRAM: the proof of r2 is wrong")
        for line in caplog.messages
    )


def test_who_it_is_decides_what_it_may(tmp_path: Path) -> None:
    """The whole principal: a user of the same name is another one."""
    given = {
        **GIVEN,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "Robot:alice",
    }
    describe = DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
    )
    with running_broker(tmp_path, given, [plugin(spec())]) as broker:
        with client(broker) as asked:
            assert log_in(asked, "alice").error_code == 0
            assert asked.ask(describe, 3).error_code == 0
        with client(broker) as asked:
            asked.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            assert asked.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2).error_code == 0
            assert asked.ask(describe, 3).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_later_log_in_is_of_the_same_principal(tmp_path: Path) -> None:
    kinds = iter(("Robot", "Robot", "User"))
    outcome = lambda name: Authenticated(Principal(next(kinds), name))  # noqa: E731
    with running_broker(tmp_path, GIVEN, [plugin(spec(outcome))]) as broker, client(broker) as asked:
        assert [log_in(asked).error_code for _ in range(3)] == [0, 0, FAILED]
        assert closed(asked)


def test_one_listener_may_have_its_own(tmp_path: Path) -> None:
    given = {
        **GIVEN,
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
        "listener.security.protocol.map": "A:SASL_PLAINTEXT,B:SASL_PLAINTEXT",
        "inter.broker.listener.name": "A",
        "listener.name.b.lc.sasl.mechanisms": "CRAM-PLUS",
    }
    del given["sasl.enabled.mechanisms"]
    with running_broker(tmp_path, given, [plugin(spec())]) as broker:
        for listener, mechanism in (("A", "CRAM"), ("B", "CRAM-PLUS")):
            with client(broker, listener) as asked:
                # Without sasl.enabled.mechanisms they are all.
                assert list(asked.ask(SaslHandshakeRequest(mechanism="X"), 1).mechanisms) == [mechanism]
            with client(broker, listener) as asked:
                assert log_in(asked, mechanism=mechanism).error_code == 0


def test_a_session_ends(tmp_path: Path) -> None:
    """At its time, which the client is told; at none that is told where there is none or it cannot be said."""
    ends = {"soon": 1, "later": 1 << 42, "never": None, "beyond": 1 << 90}
    outcome = lambda name: Authenticated(Principal("User", name), ends[name])  # noqa: E731
    with running_broker(tmp_path, GIVEN, [plugin(spec(outcome))]) as broker:
        lasts = {}
        for name in ends:
            with client(broker) as asked:
                lasts[name] = log_in(asked, name).session_lifetime_ms
    assert (lasts["never"], lasts["beyond"], lasts["soon"]) == (0, 0, 0)
    assert 1 << 41 < lasts["later"] < 1 << 42


def test_what_it_says_later_ends_the_connection(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`still_holds` is asked when users of the broker change; one that fails does not hold."""
    holds: dict[str, Any] = {"good": True, "gone": True, "broken": True}

    def still_holds(name: str) -> bool:
        if holds[name] is None:
            raise KeyError(name)
        return bool(holds[name])

    outcome = lambda name: Authenticated(Principal("User", name), still_holds=lambda: still_holds(name))  # noqa: E731
    with (
        running_broker(tmp_path, GIVEN, [plugin(spec(outcome))]) as broker,
        client(broker) as good,
        client(broker) as gone,
        client(broker) as broken,
    ):
        for asked, name in ((good, "good"), (gone, "gone"), (broken, "broken")):
            assert log_in(asked, name).error_code == 0
        holds.update(gone=False, broken=None)
        add_user(broker)
        assert closed(gone) and closed(broken)
        assert good.ask(MetadataRequest(topics=[]), 12).brokers
    (line,) = [line for line in caplog.messages if "plugin acme: authenticator knock failed" in line]
    assert "KeyError" in line


def add_user(broker: RunningBroker) -> None:
    from leafcuttr.wire.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        ScramCredentialUpsertion,
    )

    request = AlterUserScramCredentialsRequest(
        deletions=[],
        upsertions=[
            ScramCredentialUpsertion(
                name="new", mechanism=1, iterations=4096, salt=b"salt", salted_password=bytes(32)
            )
        ],
    )
    with client(broker, "PLAINTEXT") as asked:
        assert asked.ask(request, 0).results[0].error_code == 0


def raises(name: str) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize(
    "outcome",
    [
        raises,
        lambda name: True,
        lambda name: Authenticated("alice"),  # type: ignore[arg-type]
        lambda name: Authenticated(Principal("User", "\udcff")),
        lambda name: Authenticated(Principal("\udcff", "a")),
        lambda name: Challenge("text"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_refuses(outcome: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running_broker(tmp_path, GIVEN, [plugin(spec(outcome))]) as broker:
        with client(broker) as asked:
            assert log_in(asked).error_code == FAILED
            assert closed(asked)
        with client(broker) as asked:
            assert log_in(asked, secret=b"x").error_code == FAILED
        until(lambda: "the proof of r2 is wrong" in caplog.text, "the line of the second refusal")
    assert not any(record.exc_info for record in caplog.records if record.levelno >= logging.WARNING)


def no_file() -> Any:
    raise PluginError("the list of robots is not there")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("plugins", "more", "line"),
    [
        (
            [plugin(spec())],
            {"lc.sasl.mechanisms": "CRAM,CRAM-MINUS"},
            r"lc\.sasl\.mechanisms \(.+\) names CRAM-MINUS, which no authenticator of a plugin that is on has; "
            r"there is CRAM, CRAM-PLUS$",
        ),
        (
            [plugin(spec())],
            {"lc.sasl.mechanisms": "cram"},
            "names cram, which no authenticator of a plugin that is on has; there is CRAM, CRAM-PLUS$",
        ),
        (
            [plugin(spec())],
            {"listener.name.sasl_plaintext.lc.sasl.mechanisms": "OTHER"},
            r"^listener\.name\.sasl_plaintext\.lc\.sasl\.mechanisms \(.+\) names OTHER, which no authenticator",
        ),
        ([plugin()], {}, "names CRAM, which no authenticator of a plugin that is on has; there is none$"),
        ([], {}, "names CRAM, which no authenticator of a plugin that is on has; there is none$"),
        (
            [plugin(spec()), plugin(spec(name="other"), name="zeta")],
            {},
            "names CRAM, which several authenticators have: knock of plugin acme and other of plugin zeta$",
        ),
        (
            [plugin(spec(make=no_file))],
            {},
            r"lc\.sasl\.mechanisms \(.+\): plugin acme: the list of robots is not there$",
        ),
        (
            [plugin(spec(make=lambda: 3.5))],
            {},
            r"plugin acme: authenticator knock failed: it was made as a float, which has no method authenticate$",
        ),
        (
            [plugin(spec(mechanisms=("PLAIN",)))],
            {"lc.sasl.mechanisms": "PLAIN"},
            r"^lc\.sasl\.mechanisms=PLAIN: PLAIN is the broker's own: sasl\.enabled\.mechanisms offers it$",
        ),
        (
            [plugin(spec())],
            {"sasl.enabled.mechanisms": "CRAM"},
            r"^sasl\.enabled\.mechanisms=CRAM: CRAM is not offered; .*; lc\.sasl\.mechanisms names those of plugins$",
        ),
    ],
)
def test_a_wrong_name_stops_the_start(plugins: Any, more: Any, line: str, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=line), running_broker(tmp_path, {**GIVEN, **more}, plugins):
        pass
