"""Names of topics and groups for the shell to complete, got from the broker that the command line names.

A shell must never wait or see an error for it: a broker that does not answer within a second completes nothing. It
goes through `wire_client`, because librdkafka takes too long to load for the press of a key. The settings of the client
that stand in the line hold.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import click

from leafcuttr.cli.common.client_properties import all_properties
from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.target import Target

_PATIENCE_S: Final = 1.0
_PATIENCE: Final = "LEAFCUTTR_COMPLETION_TIMEOUT"
"""The variable with another number of seconds, for a broker that is far away."""
_MOST: Final = 500
DEFAULT_ADDRESS: Final = "localhost:9092"
"""For an argument that is completed in a command without `--bootstrap-server`."""


def complete_topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topics that begin so; internal ones only if the word begins with an underscore."""
    return _topics(lambda: _target_of(ctx), incomplete)


def topics_at(
    address: str, incomplete: str, properties: Sequence[str] = (), client_config: Path | None = None
) -> list[str]:
    """The same, of the cluster at this address."""
    return _topics(lambda: _target(address, properties, client_config), incomplete)


def _topics(target: Callable[[], Target], incomplete: str) -> list[str]:
    def names() -> Iterable[str]:
        from leafcuttr.cli.common.wire_client.cluster import ClusterClient

        with ClusterClient(target()) as cluster:
            return [name for name in cluster.topics() if incomplete or not name.startswith("__")]

    return _offer(names, incomplete)


def complete_groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Consumer groups that begin so."""
    return _groups(lambda: _target_of(ctx), incomplete)


def groups_at(
    address: str, incomplete: str, properties: Sequence[str] = (), client_config: Path | None = None
) -> list[str]:
    """The same, of the cluster at this address."""
    return _groups(lambda: _target(address, properties, client_config), incomplete)


def _groups(target: Callable[[], Target], incomplete: str) -> list[str]:
    def names() -> Iterable[str]:
        from leafcuttr.cli.common.wire_client.cluster import ClusterClient
        from leafcuttr.wire.messages.list_groups import ListGroupsRequest

        with ClusterClient(target()) as cluster:
            brokers = list(cluster.brokers())
            return [
                group.group_id
                for broker in brokers
                for group in cluster.send(broker, ListGroupsRequest()).groups
            ]

    return _offer(names, incomplete)


def complete_transactional_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Transactional ids that begin so."""

    def names() -> Iterable[str]:
        from leafcuttr.cli.common.wire_client.cluster import ClusterClient
        from leafcuttr.wire.messages.list_transactions import ListTransactionsRequest

        with ClusterClient(_target_of(ctx)) as cluster:
            brokers = list(cluster.brokers())
            return [
                state.transactional_id
                for broker in brokers
                for state in cluster.send(broker, ListTransactionsRequest()).transaction_states
            ]

    return _offer(names, incomplete)


def _offer(names: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    found: list[str] = []
    with contextlib.suppress(Failure, click.UsageError):
        found = sorted({name for name in names() if name.startswith(incomplete)})[:_MOST]
    return found


def _target_of(ctx: click.Context) -> Target:
    # While a line is completed click parses it without calling anything: the options are in the context, and what the
    # person has not typed comes from the variable or the default as ever.
    given = ctx.params
    address = str(given.get("address") or DEFAULT_ADDRESS)
    return _target(address, given.get("properties") or (), given.get("client_config"))


def _target(address: str, properties: Sequence[str], client_config: Path | None) -> Target:
    return Target(address, all_properties(properties, client_config), timeout=_patience())


def _patience() -> float:
    try:
        return min(max(float(os.environ.get(_PATIENCE, _PATIENCE_S)), 0.1), 60)
    except ValueError:
        return _PATIENCE_S
