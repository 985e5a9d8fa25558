"""The settings of a client of a registry as texts, by the names of Confluent's clients in Java and Python, with
`schema.registry.` before them or without. No I/O: files are read when the first connection is made.

`schema.registry.url`: addresses with commas between them, tried in their order; a user and a password may be in them.

How a request authenticates: `basic.auth.credentials.source` is URL, USER_INFO (`basic.auth.user.info=NAME:PASSWORD`) or
SASL_INHERIT (`sasl.username`, `sasl.password`); or `bearer.auth.token`, with `bearer.auth.credentials.source` of
STATIC_TOKEN, `bearer.auth.logical.cluster` and `bearer.auth.identity.pool.id`.

TLS: `ssl.truststore.location` or `ssl.ca.location` (PEM), or `ssl.truststore.certificates` (its text);
`ssl.keystore.location` or `ssl.certificate.location` with `ssl.key.location` and `ssl.key.password` (PEM);
`ssl.endpoint.identification.algorithm` (empty: the host's name is not checked).

Times and bounds, with their defaults: `http.connect.timeout.ms` 60000, `http.read.timeout.ms` 60000 (of a whole
answer), `max.retries` 3, `retries.wait.ms` 1000, `retries.max.wait.ms` 20000, `cache.capacity` 1000 schemas,
`missing.id.cache.ttl.sec` 0, `max.response.bytes` 16777216. `normalize.schemas` is for `find` and `register`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from leafcuttr_sdk.errors import PluginError

_PREFIX: Final = "schema.registry."
_INT_MAX: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """Where a registry answers. `authorization` is what a user and a password in the URL make of it."""

    secure: bool
    host: str
    port: int
    path: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """As it can be shown."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """Times are in seconds, sizes in bytes; None is not given."""

    addresses: tuple[RegistryAddress, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = ()
    ca_file: str | None = None
    ca_text: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    checks_host: bool = True
    verifies: bool = True
    connect_timeout_s: float = 60.0
    read_timeout_s: float = 60.0
    retries: int = 3
    retry_wait_s: float = 1.0
    retry_wait_max_s: float = 20.0
    capacity: int = 1000
    missing_id_s: float = 0.0
    max_response_bytes: int = 16 << 20
    normalize: bool = False


def registry_settings(properties: Mapping[str, str]) -> RegistrySettings:
    """Raises PluginError with one line that names the property which cannot be used, and never a password. Properties
    that it does not know are for others: those of a Kafka client may be among them."""
    given: dict[str, str] = {}
    for name, value in properties.items():
        # What has the prefix is for the registry alone, and counts more.
        if name.startswith(_PREFIX):
            given[name] = str(value)
        else:
            given.setdefault(_PREFIX + name, str(value))
    read = _Reader({name.removeprefix(_PREFIX): value for name, value in given.items()})
    user, password = read.basic()
    token, headers = read.bearer()
    if user is not None and token is not None:
        raise PluginError("basic.auth.user.info and bearer.auth.token are given both: expected one of them")
    certificate = read.first("ssl.certificate.location", "ssl.keystore.location")
    return RegistrySettings(
        addresses=read.addresses(),
        user=user,
        password=password,
        token=token,
        headers=headers,
        ca_file=read.first("ssl.ca.location", "ssl.truststore.location"),
        ca_text=read.first("ssl.ca.pem", "ssl.truststore.certificates"),
        certificate_file=certificate,
        key_file=read.first("ssl.key.location"),
        key_password=read.first("ssl.key.password"),
        checks_host=read.choice("ssl.endpoint.identification.algorithm", "https", ("https", "none", ""))
        == "https",
        verifies=read.flag("enable.ssl.certificate.verification", default=True),
        connect_timeout_s=read.number("http.connect.timeout.ms", 60_000, 1) / 1000,
        read_timeout_s=read.number("http.read.timeout.ms", 60_000, 1) / 1000,
        retries=read.number("max.retries", 3),
        retry_wait_s=read.number("retries.wait.ms", 1000) / 1000,
        retry_wait_max_s=read.number("retries.max.wait.ms", 20_000) / 1000,
        capacity=read.number("cache.capacity", 1000, 1),
        missing_id_s=float(read.number("missing.id.cache.ttl.sec", 0)),
        max_response_bytes=read.number("max.response.bytes", 16 << 20, 1000),
        normalize=read.flag("normalize.schemas", default=False),
    )


class _Reader:
    """Properties without the prefix."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def first(self, *names: str) -> str | None:
        """That of the first name that is given."""
        return next((self._given[name] for name in names if self._given.get(name)), None)

    def addresses(self) -> tuple[RegistryAddress, ...]:
        found = tuple(
            _address(each.strip()) for each in self._given.get("url", "").split(",") if each.strip()
        )
        if not found:
            raise PluginError("schema.registry.url is not given: expected http://HOST:PORT")
        return found

    def basic(self) -> tuple[str | None, str | None]:
        source = self.choice("basic.auth.credentials.source", "", ("", "URL", "USER_INFO", "SASL_INHERIT"))
        info = self.first("basic.auth.user.info")
        if source == "SASL_INHERIT":
            user, password = self.first("sasl.username"), self.first("sasl.password")
            if user is None or password is None:
                raise PluginError(
                    "basic.auth.credentials.source=SASL_INHERIT: expected sasl.username and sasl.password"
                )
            return user, password
        if source == "USER_INFO" and info is None:
            raise PluginError("basic.auth.credentials.source=USER_INFO without basic.auth.user.info")
        if info is None or source == "URL":
            return None, None
        user, colon, password = info.partition(":")
        if not colon:
            raise PluginError("basic.auth.user.info: expected NAME:PASSWORD")
        return user, password

    def bearer(self) -> tuple[str | None, tuple[tuple[str, str], ...]]:
        token = self.first("bearer.auth.token")
        default = "STATIC_TOKEN" if token else ""
        source = self.choice("bearer.auth.credentials.source", default, ("", "STATIC_TOKEN"))
        if source and token is None:
            raise PluginError("bearer.auth.credentials.source=STATIC_TOKEN without bearer.auth.token")
        named = {
            "target-sr-cluster": self.first("bearer.auth.logical.cluster"),
            "Confluent-Identity-Pool-Id": self.first("bearer.auth.identity.pool.id"),
        }
        headers = tuple((name, value) for name, value in named.items() if value is not None)
        for name, value in (("bearer.auth.token", token or ""), *headers):
            if not value.isascii() or not value.isprintable():
                raise PluginError(f"{name}: expected printable ASCII characters")
        return token, headers

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self._given.get(name, default).strip()
        for each in allowed:
            if value.lower() == each.lower():
                return each
        raise PluginError(f"{name}={value}: expected one of {', '.join(filter(None, allowed))}")

    def flag(self, name: str, *, default: bool) -> bool:
        return self.choice(name, str(default).lower(), ("true", "false")) == "true"

    def number(self, name: str, default: int, least: int = 0) -> int:
        value = self._given.get(name, "").strip() or str(default)
        if not (value.isascii() and value.isdigit() and least <= int(value) <= _INT_MAX):
            raise PluginError(f"{name}={value}: expected a whole number from {least} to {_INT_MAX}")
        return int(value)


def _address(url: str) -> RegistryAddress:
    """Raises PluginError."""
    shown = _without_password(url)
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise PluginError(f"schema.registry.url={shown}: {error}") from None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise PluginError(f"schema.registry.url={shown}: expected http://HOST:PORT or https://HOST:PORT")
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise PluginError(f"schema.registry.url={shown!a}: expected printable ASCII characters")
    secure = parts.scheme == "https"
    return RegistryAddress(
        secure,
        host,
        port or (443 if secure else 80),
        parts.path.rstrip("/"),
        None if parts.username is None else unquote(parts.username),
        unquote(parts.password or ""),
    )


def _without_password(url: str) -> str:
    before, at, host = url.rpartition("@")
    return f"{before[: before.find('://') + 3] if '://' in before else ''}...@{host}" if at else url
