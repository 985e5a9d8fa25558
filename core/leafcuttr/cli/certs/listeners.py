"""The listeners with TLS: of a configuration, whose files are checked, and of a running broker, which reads its files
again."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.target import Target
from leafcuttr.config.catalog import LISTENER_PREFIX
from leafcuttr.config.findings import Level
from leafcuttr.config.listeners import Listener, parse_listeners
from leafcuttr.config.settings import Settings, Source
from leafcuttr.errors import ConfigError, StartError
from leafcuttr.net.tls_files import METRICS, TlsError, TlsFiles, files_of_metrics

if TYPE_CHECKING:
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient

_BROKER: Final = 4
_SET, _DELETE = 0, 1
_LOCATION: Final = "ssl.keystore.location"
_CLIENT_AUTH: Final = "ssl.client.auth"


class CheckedListener(NamedTuple):
    """A listener, the host that clients use, and the lines about it; `wrong` are those with which the broker does not
    start, or clients do not connect."""

    name: str
    host: str
    wrong: list[str]
    doubtful: list[str]


def checked(file: Path | None, overrides: tuple[str, ...]) -> Iterator[CheckedListener]:
    """Those of a configuration, as `serve` takes it. Raises Failure for one that is not right in itself."""
    from leafcuttr.plugins.catalogue import examine_all

    try:
        settings, findings, _ = examine_all(file, os.environ, overrides)
    except (ConfigError, StartError) as error:
        raise Failure(str(error)) from None
    wrong_settings = [one.line for one in findings if one.level is Level.ERROR]
    if wrong_settings:
        raise Failure(wrong_settings[0])
    of_metrics = files_of_metrics(settings)
    if of_metrics is not None:
        yield _checked(METRICS, None, lambda: of_metrics)
    for listener in parse_listeners(settings):
        if not listener.protocol.endswith("SSL"):
            continue
        yield _checked(listener.name, listener.advertised_host, partial(_files_of, settings, listener))


def _files_of(settings: Settings, listener: Listener) -> TlsFiles:
    """Raises TlsError."""
    from leafcuttr.net.listener_tls import rules_of, tls_files

    rules_of(settings, listener.name)
    return tls_files(settings, listener)


def _checked(name: str, host: str | None, files: Callable[[], TlsFiles]) -> CheckedListener:
    """Without `host` clients know it by a name that no setting says."""
    from leafcuttr.net.doubts import doubts_of_listener

    wrong: list[str] = []
    doubtful: list[str] = []
    try:
        for doubt in doubts_of_listener(files(), [] if host is None else [host]):
            (wrong if doubt.keeps_clients_out else doubtful).append(doubt.line)
    except TlsError as error:
        wrong.append(str(error))
    return CheckedListener(name, host or "", wrong, doubtful)


def read_again(target: Target) -> list[tuple[str, str | None]]:
    """Have the brokers read the files of their listeners; the listeners, and why one of them keeps what it had. Raises
    Failure.

    As Kafka's tools do it (KIP-226): the setting of the file is altered to what it is. Where it has been given at the
    start, its change is taken back instead, which there is none of; so nothing is stored.
    """
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient

    with ClusterClient(target) as cluster:
        outcomes: list[tuple[str, str | None]] = []
        for broker in cluster.brokers():
            values, dynamic = _settings_of(cluster, broker)
            for name in _names_of_listeners(values):
                setting = f"{LISTENER_PREFIX}{name.lower()}.{_LOCATION}"
                why = _altered(cluster, broker, setting, dynamic.get(setting))
                outcomes.append((f"{name} of broker {broker}", why))
            for prefix in _others(values):
                why = _altered(cluster, broker, f"{prefix}.{_LOCATION}", None)
                outcomes.append((f"{prefix} of broker {broker}", why))
    if not outcomes:
        raise Failure("no listener has TLS")
    return outcomes


def _settings_of(cluster: "ClusterClient", broker: int) -> tuple[dict[str, str], dict[str, str]]:
    """All that are shown, and of them those that were changed while the broker runs."""
    from leafcuttr.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

    resource = DescribeConfigsResource(
        resource_type=_BROKER, resource_name=str(broker), configuration_keys=None
    )
    (answer,) = cluster.send(
        broker, DescribeConfigsRequest(resources=[resource], include_synonyms=False), at_least=1
    ).results
    if answer.error_code:
        raise Failure(f"broker {broker}: {reason(answer.error_code, answer.error_message)}")
    values = {one.name: one.value or "" for one in answer.configs}
    dynamic = {
        one.name: one.value or ""
        for one in answer.configs
        if one.config_source == Source.DYNAMIC_BROKER_CONFIG
    }
    return values, dynamic


def _names_of_listeners(values: Mapping[str, str]) -> list[str]:
    """Those with TLS, by the settings of a broker."""
    names = (
        "listeners",
        "listener.security.protocol.map",
        "advertised.listeners",
        "controller.listener.names",
    )
    settings = Settings({name: values[name] for name in names if values.get(name)})
    try:
        listeners = parse_listeners(settings)
    except ConfigError as error:
        raise Failure(str(error)) from None
    return [each.name for each in listeners if each.protocol.endswith("SSL")]


def _others(values: Mapping[str, str]) -> list[str]:
    """The prefixes of the settings of those with TLS that are not for Kafka's clients: the metrics port, and what
    plugins serve. What connects to others has a keystore too, but requires nothing of clients."""
    prefixes = [
        name.removesuffix(f".{_LOCATION}")
        for name, value in sorted(values.items())
        if value and name.endswith(f".{_LOCATION}") and not name.startswith(LISTENER_PREFIX)
    ]
    return [
        each
        for each in prefixes
        if f"{each}.{_CLIENT_AUTH}" in values and values.get(f"{each}.enable", "true") == "true"
    ]


def _altered(cluster: "ClusterClient", broker: int, setting: str, value: str | None) -> str | None:
    from leafcuttr.wire.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    change = AlterableConfig(name=setting, value=value, config_operation=_DELETE if value is None else _SET)
    resource = AlterConfigsResource(resource_type=_BROKER, resource_name=str(broker), configs=[change])
    (answer,) = cluster.send(broker, IncrementalAlterConfigsRequest(resources=[resource])).responses
    return reason(answer.error_code, answer.error_message) if answer.error_code else None
