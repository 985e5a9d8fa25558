"""`lc.authorizer`: the authorizer of a plugin in a real broker, and those with which none starts."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import KafkaException

from leafcuttr.errors import StartError
from leafcuttr_sdk import AuthorizerSpec, Operation, Plugin, PluginError, Principal, ResourceType
from leafcuttr_sdk.testing import running_broker
from support import librdkafka

READ = (Operation.READ, ResourceType.TOPIC, "t")
ALICE, BOB, ROOT = (Principal("User", name) for name in ("alice", "bob", "root"))


def plugin(*specs: AuthorizerSpec, name: str = "acme") -> ModuleType:
    module = ModuleType(name.replace("-", "_"))
    module.PLUGIN = Plugin(name, 1, "authorizes", api_minor=3)  # type: ignore[attr-defined]
    module.leafcuttr_register_authorizers = lambda: specs  # type: ignore[attr-defined]
    return module


class OfAlice:
    """She may do everything, bob nothing, of others it has no opinion."""

    def __init__(self, broker: Any, changed: Any) -> None:
        self.broker, self.changed = broker, changed
        self.allowed = {"alice": True, "bob": False}

    def verdict(self, requester: Any, operation: Any, resource: Any) -> Any:
        return self.allowed.get(requester.principal.name)


def spec(make: Any = OfAlice, name: str = "mine") -> AuthorizerSpec:
    return AuthorizerSpec(name, "for a test", make)


SETTINGS: dict[str, Any] = {"lc.authorizer": "mine", "super.users": "User:root"}


async def allowed(view: Any, *of: Principal) -> list[bool]:
    return [view.security.allowed(principal, *READ) for principal in of]


@pytest.mark.setting("lc.authorizer")
def test_it_decides_what_clients_of_kafka_and_of_plugins_may_do(tmp_path: Path) -> None:
    made: list[OfAlice] = []

    def make(broker: Any, changed: Any) -> OfAlice:
        made.append(OfAlice(broker, changed))
        return made[0]

    with running_broker(tmp_path, SETTINGS, [plugin(spec(make))]) as broker:
        assert broker.call(lambda view: allowed(view, ALICE, BOB, ROOT, Principal("User", "carol"))) == [
            True, False, True, False,
        ]  # fmt: skip
        assert made[0].broker.settings is not None
        address = broker.bootstrap_servers
        with pytest.raises(KafkaException) as refused:
            librdkafka.create(address, "t")
        assert refused.value.args[0].name() == "TOPIC_AUTHORIZATION_FAILED"
        made[0].allowed["ANONYMOUS"] = True

        async def change(view: Any) -> None:
            made[0].changed()

        broker.call(change)
        librdkafka.create(address, "t")


class Bad:
    """Its verdict is what a test wants, or raises it."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def __call__(self, broker: Any, changed: Any) -> Bad:
        return self

    def verdict(self, *question: Any) -> Any:
        if isinstance(self.said, BaseException):
            raise self.said
        return self.said


async def wrong() -> bool:
    return True


@pytest.mark.parametrize("said", [KeyError("x"), SystemExit(3), 1, "yes", "coroutine"], ids=repr)
def test_what_fails_denies(said: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad = Bad(said)
    with running_broker(tmp_path, SETTINGS, [plugin(spec(bad))]) as broker:
        if said == "coroutine":
            bad.said = wrong()
        assert broker.call(lambda view: allowed(view, ALICE, ROOT)) == [False, True]
    (line,) = [each for each in caplog.messages if "authorizer mine failed" in each]
    assert line.startswith("plugin acme: ")


def refuses(*_: Any) -> Any:
    raise PluginError("the list of users is not there")


def breaks(*_: Any) -> Any:
    raise ValueError("bad words")


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        ((), r"lc.authorizer \(.*\) names mine, which no plugin brings that is on; there is none"),
        ((spec(name="other"),), "names mine, which no plugin brings that is on; there is other"),
        ((spec(refuses),), "plugin acme .*: authorizer mine: the list of users is not there"),
        ((spec(breaks),), "plugin acme .*: authorizer mine: ValueError: bad words"),
        (
            (spec(lambda *_: object()),),
            "authorizer mine: it was made as an object, which has no method verdict",
        ),
    ],
)
def test_without_it_the_broker_does_not_start(specs: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=words), running_broker(tmp_path, SETTINGS, [plugin(*specs)]):
        pass


def test_without_any_plugin_it_does_not_start(tmp_path: Path) -> None:
    with (
        pytest.raises(StartError, match="names mine, which no plugin brings"),
        running_broker(tmp_path, SETTINGS),
    ):
        pass


def test_of_two_with_one_name_the_second_plugin_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = [plugin(spec()), plugin(spec(), name="zeta")]
    with running_broker(tmp_path, SETTINGS, plugins) as broker:
        assert broker.call(lambda view: allowed(view, ALICE)) == [True]
    assert any("plugin acme has a authorizer mine too" in line for line in caplog.messages)


def test_a_plugin_may_not_bring_the_authenticator_of_the_broker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from leafcuttr_sdk import AuthenticatorSpec

    module = plugin()
    module.leafcuttr_register_authenticators = lambda broker: [  # type: ignore[attr-defined]
        AuthenticatorSpec("broker", "not it", object, ("basic",))  # type: ignore[arg-type]
    ]
    with running_broker(tmp_path, {}, [module]):
        pass
    assert any(
        "it brings an authenticator broker: that is the broker's own" in line for line in caplog.messages
    )
