"""Where the admin port of a broker is, by its own settings, which DescribeConfigs reads.

The port that a broker took where `lc.metrics.port` is 0 is not among them.
"""

from typing import Final

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr.cli.common.target import Target
from leafcuttr.client.settings import HostPort

_ENABLE: Final = "lc.metrics.enable"
_HOST: Final = "lc.metrics.host"
_PORT: Final = "lc.metrics.port"
_KEYSTORE: Final = "lc.metrics.ssl.keystore.location"
_OF_ITS_MACHINE: Final = frozenset({"", "0.0.0.0", "::", "127.0.0.1", "::1", "localhost"})
"""Hosts that mean another machine elsewhere: every address of the broker's, or its loopback."""


def admin_address(target: Target) -> str:
    """`host:port` of the broker with the lowest id, with `https://` before it where the port has TLS. Raises Failure if
    its settings name none."""
    from confluent_kafka.admin import ConfigResource, ResourceType

    admin = Admin(target)
    broker = min(admin.brokers())
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    entries = admin.answer(admin.client.describe_configs([resource], **admin.wait)[resource])
    settings = {name: entries[name].value for name in (_ENABLE, _HOST, _PORT, _KEYSTORE) if name in entries}
    named = "name the admin port by --admin-server"
    if _PORT not in settings:
        raise Failure(f"the broker at {target.address} is no LeafCuttr, and has no admin port: {named}")
    if settings.get(_ENABLE) != "true":
        raise Failure(f"the broker at {target.address} has no admin port: its {_ENABLE} is false")
    if settings[_PORT] == "0":
        raise Failure(
            f"the broker at {target.address} does not say which port it took for {_PORT}=0: {named}"
        )
    host = settings.get(_HOST) or ""
    if host in _OF_ITS_MACHINE:
        host = admin.hosts()[broker]
    address = str(HostPort(host, int(settings[_PORT])))
    return f"https://{address}" if settings.get(_KEYSTORE) else address
