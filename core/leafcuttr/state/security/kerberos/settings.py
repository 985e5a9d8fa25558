"""What the settings of a listener say of GSSAPI: the key of the service, and the names of its clients."""

from typing import Final, NamedTuple

from leafcuttr.config.settings import Settings
from leafcuttr.errors import StartError
from leafcuttr.state.security.jaas_entries import jaas_entries
from leafcuttr.state.security.kerberos.names import (
    DEFAULT_RULES,
    KerberosRules,
    KerberosRulesError,
    kerberos_rules,
    parse_principal,
)
from leafcuttr.state.security.mechanism_settings import setting_of

_MODULE: Final = "Krb5LoginModule"
_RULES: Final = "sasl.kerberos.principal.to.local.rules"
_SERVICE: Final = "sasl.kerberos.service.name"


class ServiceKey(NamedTuple):
    """Where the key of the service is, and whose it is: `kafka/host@REALM`."""

    keytab: str
    principal: str


class KerberosSettings(NamedTuple):
    key: ServiceKey
    rules: KerberosRules
    realm: str
    """That of the service, for where the machine has no default realm."""


def kerberos_settings(settings: Settings, listener: str) -> KerberosSettings:
    """Those of GSSAPI on this listener. Raises StartError, one line."""
    source, key, in_jaas = _key(settings, listener)
    try:
        owner = parse_principal(key.principal)
    except ValueError as error:
        raise StartError(f"{source}: principal: {error}") from None
    if owner.host is None or owner.realm is None:
        raise StartError(f"{source}: the principal {key.principal} is not service/host@REALM")
    name, service = setting_of(settings, listener, "GSSAPI", _SERVICE)
    for where, each in ((name, service), (f"{source}: serviceName", in_jaas)):
        # Kafka compares the two with each other; clients that follow either would have no ticket for the principal.
        if each and each != owner.service:
            raise StartError(f"{where}={each}: the principal of the listener {listener} is {key.principal}")
    name, rules = setting_of(settings, listener, "GSSAPI", _RULES)
    try:
        made = kerberos_rules(rules if isinstance(rules, tuple) else DEFAULT_RULES)
    except KerberosRulesError as error:
        raise StartError(f"{name}: {error}") from None
    return KerberosSettings(key, made, owner.realm)


def _key(settings: Settings, listener: str) -> tuple[str, ServiceKey, str | None]:
    """Where the JAAS entry comes from, its key, and its serviceName. Raises StartError."""
    source, entries = jaas_entries(settings, listener, "GSSAPI")
    entry = next((each for each in entries if each.is_of(_MODULE)), None)
    if entry is None:
        raise StartError(
            f"the listener {listener} offers GSSAPI, and nothing names the key of the service: "
            f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config=com.sun.security.auth.module.{_MODULE} "
            'required useKeyTab=true keyTab="..." principal="kafka/HOST@REALM";'
        )
    options = entry.options
    for option in ("keyTab", "principal"):
        if not options.get(option):
            raise StartError(f"{source}: {_MODULE} needs {option}=")
    if options.get("useKeyTab", "").lower() != "true":
        raise StartError(f"{source}: {_MODULE} needs useKeyTab=true: the key of a service is in a file")
    return source, ServiceKey(options["keyTab"], options["principal"]), options.get("serviceName")
