"""Settings of Kafka's Java clients, given to librdkafka: names, units, and those without a meaning for librdkafka.

What is not in these tables goes to librdkafka under its own name; what it does not know it refuses by name. Files are
read in `pairs`, and what the settings mean for our own client is in `leafcuttr.client.properties`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from leafcuttr.client.errors import ClientSettingError
from leafcuttr.client.properties import check_store_types, jaas_options
from leafcuttr.client.settings import ClientTls
from leafcuttr.client.store_kinds import kind_of_store

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
_PEM: Final = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"


def for_librdkafka(settings: Mapping[str, str]) -> LibrdkafkaSettings:
    """The same settings under librdkafka's names. Raises ValueError for one that it cannot take."""
    found: LibrdkafkaSettings = {}
    for name, value in settings.items():
        if name in _WITHOUT_MEANING:
            continue
        try:
            if name == "sasl.jaas.config":
                options = jaas_options(value)
                found |= {f"sasl.{key}": options[key] for key in ("username", "password") if key in options}
            elif name in _PEM:
                found[_PEM[name]] = value
            elif name.startswith(("ssl.truststore.", "ssl.keystore.")):
                continue
            elif name in _RENAMED:
                own, convert = _RENAMED[name]
                found[own] = convert(value)
            else:
                found[name] = value
        except ClientSettingError:
            raise
        except ValueError:
            raise ValueError(f"{name}={value}: expected a number") from None
    return found | _stores(settings)


def _stores(settings: Mapping[str, str]) -> LibrdkafkaSettings:
    """librdkafka reads PEM, and PKCS#12 with a key; what is in other stores it gets as texts. Raises
    ClientSettingError."""
    check_store_types(settings)
    found: LibrdkafkaSettings = {}
    trusted, own = settings.get("ssl.truststore.location"), settings.get("ssl.keystore.location")
    if trusted is not None:
        if _kind(settings, "ssl.truststore", "PEM") == "PEM":
            found["ssl.ca.location"] = trusted
        else:
            from leafcuttr.client.stores import trusted_of_store
            from leafcuttr.net.pem import pem_of

            certificates = trusted_of_store(trusted, _passwords(settings))
            found["ssl.ca.pem"] = "".join(pem_of("CERTIFICATE", each) for each in certificates)
    if own is not None:
        # librdkafka has a setting of the same name, for PKCS#12.
        match _kind(settings, "ssl.keystore", "PKCS12"):
            case "PEM":
                found |= {"ssl.certificate.location": own, "ssl.key.location": own}
            case "PKCS12":
                found["ssl.keystore.location"] = own
                found["ssl.keystore.password"] = settings.get("ssl.keystore.password", "")
            case _:
                from leafcuttr.client.stores import own_of_store

                key, begin, certificates_of_it = own_of_store(own, _passwords(settings)).partition(
                    _CERTIFICATE
                )
                found |= {"ssl.key.pem": key, "ssl.certificate.pem": begin + certificates_of_it}
    return found


def _passwords(settings: Mapping[str, str]) -> ClientTls:
    return ClientTls(
        key_password=settings.get("ssl.key.password"),
        keystore_password=settings.get("ssl.keystore.password"),
        truststore_password=settings.get("ssl.truststore.password"),
    )


def _kind(settings: Mapping[str, str], store: str, usual: str) -> str:
    """What kind of store it is: as the file looks, as in Java, else as the settings say, else the usual one."""
    location = settings[f"{store}.location"]
    return kind_of_store(location) or settings.get(f"{store}.type", "").upper() or usual
