"""Settings of a client as texts, by the names of Kafka's Java clients and of librdkafka, read in this one place.

    settings = client_settings({"bootstrap.servers": "hub:9092", "security.protocol": "SASL_SSL", ...})

Where the two have different names for one thing, both are taken, and the one that is given last counts; where they
have one name with different defaults, Java's hold. Which kind a store is its content says, as for Java.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from leafcuttr.client.errors import ClientSettingError
from leafcuttr.client.known_names import KNOWN
from leafcuttr.client.settings import ClientSasl, ClientSettings, ClientTls, HostPort, Pem

DEFAULT_PORT: Final = 9092
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
_INT_MAX: Final = (1 << 31) - 1


def client_settings(properties: Mapping[str, str], *, client_id: str = "leafcuttr") -> ClientSettings:
    """Raises ClientSettingError. `client_id` is for a client that was given none."""
    given: dict[str, str] = {}
    for name, value in properties.items():
        own = _ALIASES.get(name, name)
        given[own] = str(value).strip() if own not in _AS_THEY_ARE else str(value)
    protocol = _choice("security.protocol", given.get("security.protocol", "PLAINTEXT").upper(), _PROTOCOLS)
    fields: dict[str, Any] = {
        number.field: number.read(name, given[name]) for name, number in _NUMBERS.items() if given.get(name)
    }
    read = _NUMBERS.keys() | _TEXTS
    return ClientSettings(
        bootstrap=addresses("bootstrap.servers", given.get("bootstrap.servers", "")),
        client_id=given.get("client.id") or client_id,
        client_rack=given.get("client.rack", ""),
        tls=_tls(given) if protocol in ("SSL", "SASL_SSL") else None,
        sasl=_sasl(given) if protocol.startswith("SASL") else None,
        other={name: value for name, value in given.items() if name in KNOWN - read},
        unknown=tuple(name for name in properties if _ALIASES.get(name, name) not in KNOWN | read),
        **fields,
    )


def addresses(option: str, text: str) -> tuple[HostPort, ...]:
    """`host`, `host:port`, `[::1]:port`, several with commas. Raises ClientSettingError that names the option."""
    found = []
    for item in text.split(","):
        word = item.strip().rpartition("://")[2]
        host, colon, port = word.rpartition(":")
        if not colon or word.endswith("]"):
            host, port = word, str(DEFAULT_PORT)
        if not host.strip("[]") or not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
            raise ClientSettingError(f"{option} {item.strip()!r}: expected HOST:PORT")
        found.append(HostPort(host.strip("[]"), int(port)))
    return tuple(found)


class _Number(NamedTuple):
    """A setting that is a whole number from `least` on; in the field it is divided by `unit`."""

    field: str
    least: int = 0
    unit: int = 1

    def read(self, name: str, value: str) -> float | int | None:
        try:
            number = int(value)
        except ValueError:
            number = self.least - 1
        if not self.least <= number <= _INT_MAX:
            raise ClientSettingError(
                f"{name}={value}: expected a whole number from {self.least} to {_INT_MAX}"
            )
        if self.unit == 1:
            return None if number == -1 else number
        return number / self.unit


_NUMBERS: Final[Mapping[str, _Number]] = {
    "request.timeout.ms": _Number("request_timeout_s", 1, 1000),
    "socket.connection.setup.timeout.ms": _Number("connect_timeout_s", 1, 1000),
    "reconnect.backoff.ms": _Number("reconnect_backoff_s", 0, 1000),
    "reconnect.backoff.max.ms": _Number("reconnect_backoff_max_s", 0, 1000),
    "retry.backoff.ms": _Number("retry_backoff_s", 0, 1000),
    "retry.backoff.max.ms": _Number("retry_backoff_max_s", 0, 1000),
    "metadata.max.age.ms": _Number("metadata_max_age_s", 0, 1000),
    "delivery.timeout.ms": _Number("delivery_timeout_s", 0, 1000),
    "fetch.min.bytes": _Number("fetch_min_bytes"),
    "fetch.max.wait.ms": _Number("fetch_max_wait_s", 0, 1000),
    "fetch.max.bytes": _Number("fetch_max_bytes"),
    "max.partition.fetch.bytes": _Number("max_partition_fetch_bytes"),
    "max.request.size": _Number("max_request_size"),
    "receive.message.max.bytes": _Number("max_response_bytes", 1000),
    "send.buffer.bytes": _Number("send_buffer_bytes", -1),
    "receive.buffer.bytes": _Number("receive_buffer_bytes", -1),
}
_TEXTS: Final = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "client.rack",
        "enable.ssl.certificate.verification",
        "sasl.jaas.config",
        "sasl.mechanism",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""The names of the other settings that are read here."""
_AS_THEY_ARE: Final = frozenset(
    {
        "sasl.password",
        "sasl.username",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.truststore.password",
    }
)
_ALIASES: Final[Mapping[str, str]] = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "socket.timeout.ms": "request.timeout.ms",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "message.timeout.ms": "delivery.timeout.ms",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "message.max.bytes": "max.request.size",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
}
"""Names of librdkafka, or older ones, and Java's."""


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ClientSettingError(f"{name}={value}: expected one of {', '.join(allowed)}")
    return value


def _sasl(given: Mapping[str, str]) -> ClientSasl:
    mechanism = given.get("sasl.mechanism", "")
    if mechanism.upper() not in MECHANISMS:
        # Java's default, GSSAPI, is none of them: so it has to be named.
        raise ClientSettingError(
            f"sasl.mechanism={mechanism or '(not given)'}: expected one of {', '.join(MECHANISMS)}"
        )
    options = jaas_options(given["sasl.jaas.config"]) if "sasl.jaas.config" in given else {}
    username = given.get("sasl.username", options.get("username"))
    password = given.get("sasl.password", options.get("password"))
    if username is None or password is None:
        lacks = "user name" if username is None else "password"
        raise ClientSettingError(
            f"security.protocol={given['security.protocol']} without a {lacks}: expected sasl.jaas.config, or "
            "sasl.username and sasl.password"
        )
    is_token = options.get("tokenauth", "false").lower() == "true"
    return ClientSasl(mechanism=mechanism.upper(), username=username, password=password, is_token=is_token)


_OPTION: Final = re.compile(r'\s*([\w.]+)\s*=\s*("(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^\s;"\']+)')
_MODULE: Final = re.compile(r"\s*[\w.$]+\s+(?:required|requisite|sufficient|optional)\b", re.IGNORECASE)


def jaas_options(text: str) -> dict[str, str]:
    """The options of the one login module of a `sasl.jaas.config`. Its name does not matter: the mechanism is named
    apart from it. Raises ClientSettingError."""
    expected = 'sasl.jaas.config: expected MODULE required username="..." password="...";'
    module = _MODULE.match(text)
    if module is None:
        raise ClientSettingError(expected)
    at, found = module.end(), dict[str, str]()
    while match := _OPTION.match(text, at):
        value = match[2]
        found[match[1]] = re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value
        at = match.end()
    if text[at:].strip() != ";":
        raise ClientSettingError(expected)
    return found


def _tls(given: Mapping[str, str]) -> ClientTls:
    algorithm = given.get("ssl.endpoint.identification.algorithm", "https").lower()
    _choice("ssl.endpoint.identification.algorithm", algorithm, ("https", "none", ""))
    check_store_types(given)
    names = given.get("ssl.enabled.protocols", ",".join(_TLS_VERSIONS))
    versions = frozenset(name.strip() for name in names.split(",")) & set(_TLS_VERSIONS)
    if not versions:
        raise ClientSettingError(f"ssl.enabled.protocols={names}: expected {' or '.join(_TLS_VERSIONS)}")
    return ClientTls(
        trusted=_pem(
            given, "ssl.truststore.certificates", "ssl.ca.pem", "ssl.truststore.location", "ssl.ca.location"
        ),
        revoked=_pem(given, "ssl.crl.location"),
        certificate=_pem(
            given,
            "ssl.keystore.certificate.chain",
            "ssl.certificate.pem",
            "ssl.keystore.location",
            "ssl.certificate.location",
        ),
        key=_pem(given, "ssl.keystore.key", "ssl.key.pem", "ssl.key.location"),
        key_password=given.get("ssl.key.password"),
        keystore_password=given.get("ssl.keystore.password"),
        truststore_password=given.get("ssl.truststore.password"),
        ciphers=given.get("ssl.cipher.suites"),
        versions=versions,
        verifies=_flag(given, "enable.ssl.certificate.verification", default=True),
        checks_host=algorithm == "https",
    )


def _pem(given: Mapping[str, str], *names: str) -> Pem | None:
    """The first of these settings that is given."""
    name = next((name for name in names if given.get(name)), None)
    return None if name is None else Pem(name, given[name], name.endswith(".location"))


def check_store_types(given: Mapping[str, str]) -> None:
    """Raises ClientSettingError for a store of a type that cannot be read."""
    for store in ("ssl.truststore", "ssl.keystore"):
        if given.get(f"{store}.location"):
            _choice(f"{store}.type", given.get(f"{store}.type", "PEM").upper(), _STORE_TYPES)


def _flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    if name not in given:
        return default
    return _choice(name, given[name].lower(), ("true", "false")) == "true"
