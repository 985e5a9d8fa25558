"""What the four APIs of settings share: kinds of resources, which broker is meant, changes of topics and brokers.

The order of checks and their words are Kafka 4.3's; they were read off a real broker. How a
request spells a change is its own handler's business: it comes as a function from the present texts of a resource to
the new ones.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, Protocol, TypeVar

from leafcuttr.config.catalog import KERBEROS_RULES, LISTENER_PREFIX, Catalog
from leafcuttr.config.settings import Settings
from leafcuttr.errors import BrokerError, InvalidConfig, InvalidRequest, UnknownTopicOrPartition
from leafcuttr.handlers.access import (
    ALTER_CLUSTER_CONFIGS,
    ALTER_GROUP_CONFIGS,
    ALTER_TOPIC_CONFIGS,
    Right,
    denied,
    may,
)
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state import topic_names
from leafcuttr.state.broker import Broker
from leafcuttr.state.dynamic_settings import ALL_BROKERS
from leafcuttr.state.security.acl import CLUSTER_NAME

Edit = Callable[[Mapping[str, str]], Mapping[str, str]]

_TWICE: Final = "Each resource must appear at most once."


class Named(Protocol):
    """A resource of a request that changes settings."""

    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


R = TypeVar("R", bound=Named)


class ConfigResourceType(IntEnum):
    """The kinds of things that have settings (org.apache.kafka.common.config.ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


_KINDS: Final[frozenset[int]] = frozenset(ConfigResourceType)
_NEEDED: Final[Mapping[int, Right]] = {
    ConfigResourceType.TOPIC: ALTER_TOPIC_CONFIGS,
    ConfigResourceType.GROUP: ALTER_GROUP_CONFIGS,
}


def is_known(kind: int) -> bool:
    return kind in _KINDS


async def change_each(
    resources: Sequence[R], change: Callable[[R], Awaitable[None]]
) -> list[tuple[R, BrokerError | None]]:
    """Make the change of each resource by itself; what came of each, in order. One that is named twice fails."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    outcomes: list[tuple[R, BrokerError | None]] = []
    async for resource in Pace().over(resources):
        try:
            if times[resource.resource_type, resource.resource_name] > 1:
                raise InvalidRequest(_TWICE)
            await change(resource)
            outcomes.append((resource, None))
        except BrokerError as error:
            # A traceback would keep its frames, and the collector would walk those of thousands.
            outcomes.append((resource, error.with_traceback(None)))
    return outcomes


def check_node(broker: Broker, name: str) -> None:
    """Raise InvalidRequest unless `name` is this broker's id. Words of the APIs that change settings."""
    try:
        node = int(name)
    except ValueError:
        raise InvalidRequest(f"Node id must be an integer, but it is: {name}") from None
    if node != broker.node_id:
        raise InvalidRequest(f"Unexpected broker id, expected {broker.node_id}, but received {name}")


def check_right(broker: Broker, context: RequestContext | None, kind: int, name: str) -> None:
    """Raise an error of `access` unless the client may change the settings of this resource. Without a context it is
    the broker itself."""
    if context is None:
        return
    right = _NEEDED.get(kind, ALTER_CLUSTER_CONFIGS)
    if not may(broker, context, right, CLUSTER_NAME if right is ALTER_CLUSTER_CONFIGS else name):
        raise denied(
            right, None if kind == ConfigResourceType.BROKER_LOGGER else right.words
        )  # words as Kafka's


def check_names(names: Sequence[str], nulls: Iterable[str]) -> None:
    """Raise InvalidRequest for a setting that is named twice, or has no value where one is needed."""
    if len(set(names)) != len(names):
        raise InvalidRequest("Error due to duplicate config keys")
    missing = list(nulls)
    if missing:
        raise InvalidRequest(f"Null value not supported for : {', '.join(missing)}")


async def alter(
    broker: Broker,
    context: RequestContext | None,
    kind: int,
    name: str,
    changed: Sequence[str],
    edit: Edit,
    *,
    removed: Sequence[str] = (),
    validate_only: bool,
) -> None:
    """Change the settings of a topic or a broker; `changed` are the names that get a value, `removed` those that the
    request takes it from.

    Raises what `check_right` does, InvalidRequest, InvalidConfig, InvalidTopic, UnknownTopicOrPartition, StorageError.
    """
    if kind in (ConfigResourceType.TOPIC, ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS):
        check_right(broker, context, kind, name)
    if kind == ConfigResourceType.TOPIC:
        await _alter_topic(broker, name, edit, validate_only=validate_only)
    elif kind == ConfigResourceType.BROKER:
        await _alter_broker(broker, context, name, changed, edit, removed, validate_only=validate_only)
    elif kind == ConfigResourceType.GROUP:
        if not name:
            raise InvalidRequest("Default group resources are not allowed.")
        raise InvalidRequest(
            "Settings of groups belong to the consumer protocol of KIP-848, which comes in a later version"
        )
    elif kind == ConfigResourceType.CLIENT_METRICS:
        if not name:
            raise InvalidRequest("Subscription name can't be empty")
        raise InvalidRequest("Metrics of clients (KIP-714) come in a later version")
    else:
        raise InvalidRequest(f"Unknown resource type {kind}")


async def _alter_topic(broker: Broker, name: str, edit: Edit, *, validate_only: bool) -> None:
    if not name:
        raise InvalidRequest("Default topic resources are not allowed.")
    topic_names.check(name)
    topic = broker.topics.find(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"The topic '{name}' does not exist.")
    if validate_only:
        broker.topics.vetted(name, topic.overrides, edit(topic.overrides))
    else:
        await broker.topics.edit_config(name, edit)


async def _alter_broker(
    broker: Broker,
    context: RequestContext | None,
    name: str,
    changed: Sequence[str],
    edit: Edit,
    removed: Sequence[str],
    *,
    validate_only: bool,
) -> None:
    if name:
        check_node(broker, name)
    _check_changeable(broker.settings.catalog, changed, own=bool(name))
    check_right(broker, context, ConfigResourceType.BROKER, name)
    dynamic = broker.dynamic_settings
    scope = dynamic.own_scope if name else ALL_BROKERS

    def vetted(before: Mapping[str, str]) -> Mapping[str, str]:
        after = edit(before)
        broker.chains.vet_broker(before, after)
        _vet_names_of_kerberos(broker.settings, before, after)
        return after

    of_tls = _of_tls((*changed, *removed)) if name else []
    if of_tls and broker.tls is not None:
        after = vetted(dynamic.texts(scope))
        dynamic.check(scope, after, removed)
        await broker.tls.check(broker.settings.with_changes(after), of_tls)
    if validate_only:
        dynamic.check(scope, vetted(dynamic.texts(scope)), removed)
        return
    await dynamic.edit(scope, vetted, removed)
    if of_tls and broker.tls is not None:
        await broker.tls.read_again(of_tls)


def _vet_names_of_kerberos(settings: Settings, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Of rules that nobody could log in by, where a start with them is refused too. Raises InvalidConfig."""
    changed = [
        name for name, text in after.items() if name.endswith(KERBEROS_RULES) and text != before.get(name)
    ]
    if changed:
        from leafcuttr.state.security.kerberos.names import KerberosRulesError, kerberos_rules

        for name, value in settings.parse_dynamic({name: after[name] for name in changed}).items():
            try:
                kerberos_rules(value if isinstance(value, tuple) else ())
            except KerberosRulesError as error:
                raise InvalidConfig(f"{name}: {error}") from None


def _of_tls(names: Sequence[str]) -> list[str]:
    """Those of one listener's TLS. To alter one, even to the value that it has, is how Kafka's tools have files read
    again (KIP-226). Those of a listener that is not for Kafka's clients do not change: its keystore can be taken back
    to what it was started with, which it is, and is read."""
    return [
        name
        for name in names
        if (name.startswith(LISTENER_PREFIX) and ".ssl." in name) or name.endswith(".ssl.keystore.location")
    ]


def _check_changeable(catalog: Catalog, changed: Sequence[str], *, own: bool) -> None:
    known = [setting for name in changed if (setting := catalog.broker_setting(name))]
    fixed = [setting.name for setting in known if not setting.dynamic]
    if fixed:
        raise InvalidRequest(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    keys = [setting.name for setting in known if setting.name.startswith("ssl.")]
    if keys:
        raise InvalidRequest(
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"[{', '.join(keys)}]"
        )
    single = [] if own else [setting.name for setting in known if setting.per_broker]
    if single:
        raise InvalidRequest(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(single)}]"
        )
