"""What a handler can reach: one object that only composes. It has no behaviour of its own.

`open_broker` builds the parts in the order in which they need each other; the server closes them in reverse.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from leafcuttr.config.listeners import Listener
from leafcuttr.config.load import data_directory
from leafcuttr.config.settings import Settings
from leafcuttr.log.appender import Appender
from leafcuttr.log.files.write_pressure import WritePressure
from leafcuttr.log.manager import LogManager
from leafcuttr.metrics.counts import Counts
from leafcuttr.runtime.runtime import Runtime
from leafcuttr.state.chains import Chains
from leafcuttr.state.dead_letter_writer import DeadLetterWriter
from leafcuttr.state.dynamic_settings import DynamicSettings
from leafcuttr.state.features import Features
from leafcuttr.state.fetch_sessions import FetchSessions
from leafcuttr.state.groups.coordinator import GroupCoordinator
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.plugged import Plugged
from leafcuttr.state.producer_ids import ProducerIds
from leafcuttr.state.security.bearer.sources import KeySources
from leafcuttr.state.security.quotas import Quotas
from leafcuttr.state.security.users import Users
from leafcuttr.state.topics import Topics
from leafcuttr.state.transactions.coordinator import TransactionCoordinator
from leafcuttr_sdk import Clock

if TYPE_CHECKING:
    from leafcuttr.net.live_certificates import LiveCertificates
    from leafcuttr.state.security.audit import AuditLog
    from leafcuttr.state.security.authorizer import StandardAuthorizer
    from leafcuttr.state.security.delegation_tokens import DelegationTokens
    from leafcuttr.state.security.plugged_authorizer import PluggedAuthorizer

    Authorizer = StandardAuthorizer | PluggedAuthorizer


class Waiting(Protocol):
    """A long poll that can be told to answer with what it has."""

    def give_up(self) -> None: ...


class ListenersTls(Protocol):
    """The listeners with TLS, for changes of its settings."""

    async def check(self, settings: Settings, names: Collection[str]) -> None:
        """Read the files of those for which one of these settings counts; a listener that is not for Kafka's clients
        counts where its keystore is named. Raises InvalidRequest if one of them could not be served with these
        values."""
        ...

    async def read_again(self, names: Collection[str]) -> None:
        """The same listeners take what their files have now, also where no value has changed."""
        ...


@dataclass(slots=True, eq=False)
class Broker:
    """The parts of one running broker.

    `listeners` are bound: their ports are the real ones, and `tls` has their certificates; `admin` is where metrics and
    health are answered, if they are. `certificates` are those of listeners with TLS that are not for Kafka's clients,
    the admin port's and plugins', by the prefix of their settings.
    `appender` takes the appends of the broker's own tasks. `delayed_requests` are those that wait for records or for
    other members of a group; a stopping server has them answered at once. `token_keys` are those of issuers of bearer
    tokens. `serving` is whether all that has to be ready is; `plugged` is what plugins have added. Without an
    `authorizer` everybody may do everything; `audit` is there only with one, and `delegation_tokens` only with a secret
    to make them with.
    """

    settings: Settings
    dynamic_settings: DynamicSettings
    clock: Clock
    runtime: Runtime
    node_id: int
    cluster_id: str
    logs: LogManager
    metadata: MetadataStore
    topics: Topics
    chains: Chains
    dead_letters: DeadLetterWriter
    producer_ids: ProducerIds
    features: Features
    users: Users
    quotas: Quotas
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    fetch_sessions: FetchSessions
    appender: Appender
    listeners: Sequence[Listener] = ()
    admin: Listener | None = None
    tls: ListenersTls | None = None
    certificates: "dict[str, LiveCertificates]" = field(default_factory=dict)
    delayed_requests: set[Waiting] = field(default_factory=set)
    counts: Counts = field(default_factory=Counts)
    serving: bool = False
    token_keys: KeySources = field(default_factory=KeySources)
    plugged: Plugged = field(default_factory=Plugged)
    began: float = field(default_factory=time.monotonic)
    authorizer: "Authorizer | None" = None
    audit: "AuditLog | None" = None
    delegation_tokens: "DelegationTokens | None" = None


def open_broker(settings: Settings, clock: Clock, *, pressure: WritePressure | None = None) -> Broker:
    """Open the data directory and everything in it.

    Raises StartError, with one line for the person, when the directory cannot be used.
    """
    node_id = settings.int("node.id")
    # Plugins, and the program that has the broker in it, may change the working directory.
    directory = data_directory(settings).absolute()
    runtime = Runtime.new(clock)
    logs = LogManager.open(directory, runtime=runtime, settings=settings, node_id=node_id, pressure=pressure)
    try:
        metadata = MetadataStore.open(directory)
    except BaseException:
        logs.release()
        raise
    dynamic_settings = DynamicSettings(settings, metadata, node_id)
    dynamic_settings.load()
    topics = Topics(settings=settings, metadata=metadata, logs=logs, clock=clock, node_id=node_id)
    topics.load()
    dead_letters = DeadLetterWriter(topics, clock)
    features = Features(metadata)
    producer_ids = ProducerIds(metadata)
    groups = GroupCoordinator(settings=settings, topics=topics, clock=clock)
    authorizer = _authorizer(settings, metadata)
    return Broker(
        settings=settings,
        dynamic_settings=dynamic_settings,
        clock=clock,
        runtime=runtime,
        node_id=node_id,
        cluster_id=logs.cluster_id,
        logs=logs,
        metadata=metadata,
        topics=topics,
        chains=Chains(topics, settings, metadata, dead_letters.post),
        dead_letters=dead_letters,
        producer_ids=producer_ids,
        features=features,
        users=Users(metadata),
        quotas=Quotas(metadata, settings),
        groups=groups,
        transactions=TransactionCoordinator(
            settings=settings,
            topics=topics,
            clock=clock,
            producer_ids=producer_ids,
            offsets=groups.offsets,
            features=features,
            stopped_cleanly=logs.stopped_cleanly,
        ),
        fetch_sessions=FetchSessions(settings.int("max.incremental.fetch.session.cache.slots"), clock),
        appender=Appender(clock),
        authorizer=authorizer,
        audit=None if authorizer is None else _audit(settings, authorizer, clock),
        delegation_tokens=_delegation_tokens(settings, metadata, clock),
    )


def _authorizer(settings: Settings, metadata: MetadataStore) -> "Authorizer | None":
    plugged = settings.text("lc.authorizer")
    standard = bool(settings.text("authorizer.class.name"))
    if not plugged and not standard:
        return None
    from leafcuttr.config.checks import principals_of

    super_users = principals_of(settings.text("super.users"))
    by_acls = _standard_authorizer(settings, metadata, super_users) if standard else None
    if not plugged:
        return by_acls
    from leafcuttr.state.security.plugged_authorizer import PluggedAuthorizer

    return PluggedAuthorizer(plugged, super_users, by_acls)


def _standard_authorizer(
    settings: Settings, metadata: MetadataStore, super_users: Sequence[str]
) -> "StandardAuthorizer":
    from leafcuttr.state.security.acls import Acls
    from leafcuttr.state.security.authorizer import StandardAuthorizer

    allow_if_no_acl = settings.bool("allow.everyone.if.no.acl.found")
    return StandardAuthorizer(Acls(metadata), super_users, allow_if_no_acl=allow_if_no_acl)


def _audit(settings: Settings, authorizer: "Authorizer", clock: Clock) -> "AuditLog | None":
    what = settings.text("lc.audit.log")
    if what == "off":
        return None
    from leafcuttr.state.security.audit import AuditLog

    return AuditLog(authorizer.rule, clock, every=what == "all")


def _delegation_tokens(
    settings: Settings, metadata: MetadataStore, clock: Clock
) -> "DelegationTokens | None":
    if not settings.value("delegation.token.secret.key"):
        return None
    from leafcuttr.state.security.delegation_tokens import DelegationTokens

    return DelegationTokens(metadata, settings, clock)
