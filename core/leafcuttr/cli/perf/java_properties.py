"""Settings of Kafka's Java clients, given to librdkafka: names, units, and those without a meaning for librdkafka.

What is not in these tables goes to librdkafka under its own name; what it does not know it refuses by name. Files are
read in `pairs`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

LibrdkafkaSettings = dict[str, str]

_WITHOUT_MEANING: Final = frozenset(
    {
        # Bytes go as they are, and the client runs no classes.
        "key.serializer",
        "value.serializer",
        "key.deserializer",
        "value.deserializer",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        # Waiting and chunking that belong to the Java client's own loop.
        "max.block.ms",
        "max.poll.records",
        "default.api.timeout.ms",
        "enable.metrics.push",
    }
)


def _kib(value: str) -> str:
    return str(max(1, int(value) >> 10))


def _at_least_one(value: str) -> str:
    return str(max(1, int(value)))


def _buffer(value: str) -> str:
    return str(max(0, int(value)))


_RENAMED: Final[Mapping[str, tuple[str, Callable[[str], str]]]] = {
    "buffer.memory": ("queue.buffering.max.kbytes", _kib),
    "batch.size": ("batch.size", _at_least_one),
    "max.request.size": ("message.max.bytes", str),
    "fetch.max.wait.ms": ("fetch.wait.max.ms", str),
    "max.partition.fetch.bytes": ("fetch.message.max.bytes", str),
    "send.buffer.bytes": ("socket.send.buffer.bytes", _buffer),
    "receive.buffer.bytes": ("socket.receive.buffer.bytes", _buffer),
    "transaction.two.phase.commit.enable": ("transaction.two.phase.commit.enable", str),
    "ssl.endpoint.identification.algorithm": ("ssl.endpoint.identification.algorithm", lambda v: v or "none"),
}
_JAAS: Final = re.compile(r'(username|password)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;]+)')


def for_librdkafka(settings: Mapping[str, str]) -> LibrdkafkaSettings:
    """The same settings under librdkafka's names. Raises ValueError for one that it cannot take."""
    found: LibrdkafkaSettings = {}
    for name, value in settings.items():
        if name in _WITHOUT_MEANING:
            continue
        try:
            if name == "sasl.jaas.config":
                found |= _credentials(value)
            elif name.startswith(("ssl.truststore.", "ssl.keystore.")):
                continue
            elif name in _RENAMED:
                own, convert = _RENAMED[name]
                found[own] = convert(value)
            else:
                found[name] = value
        except ValueError:
            raise ValueError(f"{name}={value}: expected a number") from None
    return found | _stores(settings)


def _credentials(jaas: str) -> LibrdkafkaSettings:
    found: LibrdkafkaSettings = {}
    for name, value in _JAAS.findall(jaas):
        found[f"sasl.{name}"] = value[1:-1].replace('\\"', '"') if value[0] == '"' else value
    return found


def _stores(settings: Mapping[str, str]) -> LibrdkafkaSettings:
    found: LibrdkafkaSettings = {}
    trusted, own = settings.get("ssl.truststore.location"), settings.get("ssl.keystore.location")
    if trusted is not None:
        _refuse_jks(settings, "ssl.truststore", ("PEM",))
        found["ssl.ca.location"] = trusted
    if own is not None:
        if _refuse_jks(settings, "ssl.keystore", ("PEM", "PKCS12")) == "PEM":
            found |= {"ssl.certificate.location": own, "ssl.key.location": own}
        else:
            found["ssl.keystore.location"] = own
            found["ssl.keystore.password"] = settings.get("ssl.keystore.password", "")
    return found


def _refuse_jks(settings: Mapping[str, str], prefix: str, known: tuple[str, ...]) -> str:
    kind = settings.get(f"{prefix}.type", "JKS").upper()
    if kind not in known:
        raise ValueError(f"{prefix}.type={kind}: only {' and '.join(known)} can be read")
    return kind
